"""A running rehearsal provider, as its control surface shows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

import httpx


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """A running rehearsal provider."""

    url: str
    pid: int

    def script(self, replies: list[dict[str, Any]], **more: Any) -> None:
        self._post("script", {"replies": replies, **more})

    def reset(self) -> None:
        self._post("reset", {})

    def ledger(self, session: UUID | str | None = None) -> list[dict[str, Any]]:
        params = {"session": str(session)} if session else {}
        found: dict[str, Any] = (
            httpx.get(f"{self.url}/rehearsal/ledger", params=params, timeout=10).raise_for_status().json()
        )
        return found["calls"]

    def post(self, path: str, body: dict[str, Any]) -> Any:
        return self._post(path, body)

    def _post(self, path: str, body: dict[str, Any]) -> Any:
        return httpx.post(f"{self.url}/rehearsal/{path}", json=body, timeout=10).raise_for_status().json()

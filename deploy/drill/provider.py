"""A running rehearsal provider, as its control surface shows it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import httpx


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """A running rehearsal provider."""

    url: str
    pid: int
    token: str = field(repr=False)

    @property
    def headers(self) -> dict[str, str]:
        """What opens its control surface."""
        return {"x-rehearsal-token": self.token}

    def script(self, replies: list[dict[str, Any]], **more: Any) -> None:
        self._post("script", {"replies": replies, **more})

    def reset(self) -> None:
        self._post("reset", {})

    def ledger(self, session: UUID | str | None = None) -> list[dict[str, Any]]:
        params = {"session": str(session)} if session else {}
        found: dict[str, Any] = self.ask("GET", "ledger", params=params).raise_for_status().json()
        return found["calls"]

    def post(self, path: str, body: dict[str, Any]) -> Any:
        return self._post(path, body)

    def _post(self, path: str, body: dict[str, Any]) -> Any:
        return self.ask("POST", path, json=body).raise_for_status().json()

    def ask(self, method: str, path: str, *, timeout: float = 10, **more: Any) -> httpx.Response:
        """One request to its control surface, whatever comes of it."""
        return httpx.request(method, f"{self.url}/rehearsal/{path}", headers=self.headers, timeout=timeout, **more)

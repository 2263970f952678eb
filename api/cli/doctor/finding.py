"""Owns what a check says: the part, whether it holds, what was seen, and the mend where it does not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from shared.settings import Settings


class State(StrEnum):
    OK = "ok"
    FAILED = "failed"
    NOTE = "note"  # worth knowing, and nothing to mend


@dataclass(frozen=True, slots=True)
class Finding:
    part: str
    state: State
    seen: str
    mend: str = ""

    def row(self) -> dict[str, str]:
        return asdict(self) | {"state": self.state.value}


@dataclass(frozen=True, slots=True)
class Facts:
    """Where the parts are. What this machine cannot know of a stack elsewhere is empty."""

    home: Path
    settings: Settings
    url: str
    token: str
    database_url: str
    direct_url: str
    redis_url: str
    provider_url: str
    is_rehearsal: bool | None
    stack: dict[str, Any] | None = field(default=None)


Check = Callable[[Facts], list[Finding]]


def ok(part: str, seen: str) -> Finding:
    return Finding(part, State.OK, seen)


def failed(part: str, seen: str, mend: str) -> Finding:
    return Finding(part, State.FAILED, seen, mend)


def noted(part: str, seen: str) -> Finding:
    return Finding(part, State.NOTE, seen)

"""What a tool is given and what it gives back; a tool raises `ToolRefused` for what the model can put right itself."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

from shared.errors import Refused

if TYPE_CHECKING:  # the children that run foreign work are told nothing of a database
    from shared.settings import Settings
    from shared.store.pool import Database

Arguments = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Store:
    """For a tool whose matter is rows. `session` and `turn` are the run's; a write carries `fence` and is one
    transaction that begins with the session's row."""

    database: Database
    settings: Settings
    session: UUID
    turn: UUID
    fence: int


@dataclass(frozen=True, slots=True)
class ToolContext:
    """One run. `workspace` may be written, `attached` never; `deadline` is in seconds of `time.monotonic()`."""

    session: str
    turn: str
    step: int
    ordinal: int
    workspace: Path
    attached: Path | None
    cancelled: Callable[[], bool]
    deadline: float
    may_act: Callable[[], bool] = lambda: True
    """Whether the worker still has its lease; past it others may have been told that this run's outcome is unknown."""
    store: Store | None = None

    def over(self) -> bool:
        return self.cancelled() or time.monotonic() >= self.deadline


@dataclass(frozen=True, slots=True)
class ToolResult:
    """`text` is what the model sees; `note`, a few words for a person, says what was left out."""

    text: str
    is_error: bool = False
    note: str | None = None


class ToolRefused(Refused):
    """The model asked for what cannot be done; the message says what to do instead and names no path of this host."""

    code = "tool_refused"


class ToolStopped(Refused):
    """The turn was cancelled, or the run's time is over, before the tool had finished."""

    code = "tool_stopped"


def store_of(context: ToolContext) -> Store:
    """The rows. Only a run outside a turn (a bench of the tools alone) has none."""
    if context.store is None:
        raise RuntimeError("this run was given no database")
    return context.store


def check_acting(context: ToolContext) -> None:
    """Right before what cannot be taken back: as `check_going`, and `ToolStopped` where the lease is over."""
    check_going(context)
    if not context.may_act():
        raise ToolStopped("stopped: this worker was cut off from the database, so nothing was changed; try again")


def check_going(context: ToolContext) -> None:
    """Raises `ToolStopped` once the turn is cancelled or the run's time is over."""
    if context.cancelled():
        raise ToolStopped("cancelled before it had finished")
    if time.monotonic() >= context.deadline:
        raise ToolStopped("stopped: the time for this run is over; ask for less at once")

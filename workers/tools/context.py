"""What a tool is given and what it gives back; a tool raises `ToolRefused` for what the model can put right itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import NAMESPACE_OID, UUID, uuid5

from shared.boottime import boottime
from shared.errors import Refused
from shared.values import Repeat
from workers.pause import Point

if TYPE_CHECKING:  # the children that run foreign work are told nothing of a database
    from shared.settings import Settings
    from shared.store.pool import Database

Arguments = Mapping[str, object]


def _no_limit() -> float:
    return math.inf


def _on(point: Point) -> None:
    """Nobody is held here."""
    del point


@dataclass(frozen=True, slots=True)
class Store:
    """For a tool whose matter is rows. `session` and `turn` are the run's; a write carries `fence` and is one
    transaction that begins with the session's row. `profile` is the session's."""

    database: Database
    settings: Settings
    session: UUID
    turn: UUID
    fence: int
    profile: str = ""


@dataclass(frozen=True, slots=True)
class MayRead:
    """What a run's own code may ask of its session: the tools `names`, each with its parameters in their order, which
    change nothing, which nobody must allow and no admin has stopped. `ask` takes a name and arguments as text."""

    names: Mapping[str, Sequence[str]]
    ask: Callable[[ToolContext, str, str], ToolResult]


@dataclass(frozen=True, slots=True)
class ToolContext:
    """One run. `workspace` may be written, `attached` never; `deadline` is in seconds of `boottime`."""

    session: str
    turn: str
    step: int
    ordinal: int
    workspace: Path
    attached: Path | None
    cancelled: Callable[[], bool]
    deadline: float
    act_until: Callable[[], float] = _no_limit
    """Until when (of `boottime`) this run may act: its worker's lease. A time that is over, once others may have been
    told that this run's outcome is unknown; a lease that comes back does not bring that right back."""
    repeat: Repeat = Repeat.REPEATABLE
    pausing: Callable[[Point], None] = _on
    store: Store | None = None
    may_read: MayRead | None = None

    @property
    def key(self) -> str:
        """The idempotency key of this run, for the far side of a keyed tool: the same whoever runs it and whenever,
        and no other run's. A UUID, which every such interface takes."""
        return run_key(self.turn, self.step, self.ordinal)

    def over(self) -> bool:
        return self.cancelled() or boottime() >= self.deadline


def run_key(turn: str, step: int, ordinal: int) -> str:
    return str(uuid5(NAMESPACE_OID, f"nightshift run {turn} {step} {ordinal}"))


class Came(Enum):
    """How far a run came."""

    TO_ITS_END = auto()
    STOPPED = auto()  # it never began, or was stopped on the way: cancelled, too late, without the right to act
    LOST = auto()  # what ran it is gone: nobody knows


@dataclass(frozen=True, slots=True)
class ToolResult:
    """`text` is what the model sees; `note`, a few words for a person, says what was left out."""

    text: str
    is_error: bool = False
    note: str | None = None
    came: Came = Came.TO_ITS_END


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


class ToolLost(Refused):
    """What ran is gone, and it may have done what may happen only once."""

    code = "tool_lost"


def check_acting(context: ToolContext) -> None:
    """Right before what cannot be taken back: as `check_going`, and `ToolStopped` where the lease is over."""
    check_going(context)
    if boottime() >= context.act_until():
        raise cut_off()


def cut_off() -> ToolStopped:
    return ToolStopped("stopped: this worker was cut off from the database, so nothing was changed; try again")


def check_going(context: ToolContext) -> None:
    """Raises `ToolStopped` once the turn is cancelled or the run's time is over."""
    if context.cancelled():
        raise ToolStopped("cancelled before it had finished")
    if boottime() >= context.deadline:
        raise ToolStopped("stopped: the time for this run is over; ask for less at once")

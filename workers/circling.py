"""Whether a turn's tool use gets anywhere: the same call that fails the same way again, calls that bring nothing new.

`look` is pure. What it goes by stands in rows (`tool_runs`), so that the next holder comes to the same end; memory
keeps it between steps. A note goes into the result that it is about; a stop ends the tool use of the turn, and the
model is asked to account for it (workers/prompt/final.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import md5

from shared.settings import Settings
from shared.store.pool import Database
from shared.store.statements import every, holder
from shared.values import Repeat, RunStatus

MOST_SEEN = 400
"""Runs of a turn that are looked back on. A turn has 90 steps unless it is given more."""
MARK = "\n[Nightshift: again: "
"""Before a note, and nowhere else at the beginning of a line of ours: what came before it is the tool's own answer."""
STALE_NOTE = 4
NOT_RUN = "not run: the tool use of this turn was stopped; say what you have and what kept you"


class Stop(StrEnum):
    """Why there are no tools any more in a turn."""

    FAILING = "failing"
    STALE = "stale"


@dataclass(frozen=True, slots=True)
class Seen:
    """One run that is over: the digests of what was asked and of what came, and whether it changed something."""

    asked: str
    came: str
    failed: bool
    acted: bool


@dataclass(frozen=True, slots=True)
class Limits:
    """How often the same failure, and how many runs in a row without anything new, end the tool use; 0 is never."""

    failures: int
    stale: int


@dataclass(frozen=True, slots=True)
class Found:
    note: str | None = None
    stop: Stop | None = None


NOTHING = Found()


def look(history: Sequence[Seen], new: Seen, limits: Limits) -> Found:
    """What is to be said of `new`, which comes after `history`."""
    if new.failed:
        return _failing(_times(history, new), limits)
    return _stale(_in_a_row([*history, new]), limits)


def _times(history: Sequence[Seen], new: Seen) -> int:
    """How often this very call has failed this very way, this time included, since anything was changed: what is
    tried again after a change is no repetition."""
    times = 1
    for one in reversed(history):
        if one.acted:
            break
        times += one == new
    return times


def _failing(times: int, limits: Limits) -> Found:
    if times < 2 or not limits.failures:
        return NOTHING
    if times >= limits.failures:
        note = f"the same call failed the same way {times} times; there is no more tool use in this turn"
        return Found(note, Stop.FAILING)
    return Found("the same call failed the same way before; change something, or say why it cannot be done")


def _in_a_row(runs: Sequence[Seen]) -> int:
    """How many of the last runs succeeded and brought what this turn had seen before, for the same call."""
    known: set[tuple[str, str]] = set()
    row = 0
    for one in runs:
        pair = (one.asked, one.came)
        row = row + 1 if pair in known and not one.failed else 0
        known.add(pair)
    return row


def _stale(row: int, limits: Limits) -> Found:
    if not limits.stale:
        return NOTHING
    if row >= limits.stale:
        return Found(f"{row} calls in a row brought nothing new; there is no more tool use in this turn", Stop.STALE)
    if row and row % STALE_NOTE == 0:
        return Found(f"{row} calls in a row brought nothing that this turn had not seen; go by what is known")
    return NOTHING


# --- between steps --------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Circle:
    """What a turn's holder keeps of it."""

    history: list[Seen] = field(default_factory=list[Seen])
    stop: Stop | None = None

    def add(self, new: Seen, limits: Limits) -> str | None:
        """The note for this run's result, if there is one."""
        found = look(self.history, new, limits)
        self.history.append(new)
        del self.history[:-MOST_SEEN]
        self.stop = self.stop or found.stop
        return found.note

    def forget(self) -> None:
        """A person has spoken: what follows is tried for them."""
        self.history.clear()
        self.stop = None


def read(database: Database, turn: object, limits: Limits) -> Circle:
    """As the rows of the turn have it since words were last put into it, for whoever takes it up."""
    rows = database.read(lambda c: every(c, holder.RUN_HISTORY, {"turn": turn, "mark": MARK, "limit": MOST_SEEN}))
    circle = Circle()
    for row in reversed(rows):
        circle.add(seen(row["digest"], row["came"], row["status"], row["repeat"]), limits)
    return circle


def seen(digest: str, came: str, status: str, repeat: str) -> Seen:
    failed = RunStatus(status) is not RunStatus.DONE
    return Seen(digest, came, failed, acted=not failed and Repeat(repeat) is not Repeat.REPEATABLE)


def limits(settings: Settings) -> Limits:
    return Limits(settings.repeat_failures, settings.repeat_stale)


def came(text: str) -> str:
    """The digest of a result, without a note of ours. As the statement makes it of the row."""
    return md5(text.partition(MARK)[0].encode(), usedforsecurity=False).hexdigest()


def noted(text: str, note: str) -> str:
    return f"{text}{MARK}{note}]"

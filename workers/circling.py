"""Whether a turn's tool use gets anywhere: the same call that fails the same way again, calls that bring nothing new.

`look` is pure. What it goes by stands in rows (`tool_runs`), so that the next holder comes to the same end; memory
keeps it between steps. A note goes into the result that it is about; a stop ends the tool use of the turn, and the
model is asked to account for it (workers/prompt/final.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
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
    """One run that is over: its step, the digests of what was asked and of what came, and whether it changed
    something."""

    step: int
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
    """What is to be said of `new`, which comes after `history`. The calls of one step were all asked for before the
    model had read any result: none of them repeats another, and nothing is stopped that it was not told of before."""
    if new.failed:
        return _failing(_times(history, new), limits)
    row = _in_a_row([*history, new])
    return _stale(row, _in_a_row([one for one in history if one.step != new.step]), limits)


def _times(history: Sequence[Seen], new: Seen) -> int:
    """In how many steps this very call has failed this very way, this one included, since anything was changed: what
    is tried again after a change is no repetition."""
    steps = {new.step}
    for one in reversed(history):
        if one.acted:
            break
        if replace(one, step=new.step) == new:
            steps.add(one.step)
    return len(steps)


def _failing(times: int, limits: Limits) -> Found:
    if times < 2 or not limits.failures:
        return NOTHING
    if times >= limits.failures:
        note = f"the same call failed the same way {times} times; there is no more tool use in this turn"
        return Found(note, Stop.FAILING)
    return Found("the same call failed the same way before; change something, or say why it cannot be done")


def _in_a_row(runs: Sequence[Seen]) -> int:
    """How many of the last runs succeeded and brought what the turn had seen in an earlier step, for the same call."""
    known: set[tuple[str, str]] = set()
    here: set[tuple[str, str]] = set()
    step = row = 0
    for one in runs:
        if one.step != step:
            known |= here
            here.clear()
            step = one.step
        pair = (one.asked, one.came)
        if one.failed or pair not in known | here:
            row = 0
        elif pair not in here:
            row += 1
        here.add(pair)
    return row


def _stale(row: int, told: int, limits: Limits) -> Found:
    """`told`: how many it were when the model asked for this step."""
    if not limits.stale:
        return NOTHING
    if row >= limits.stale and told >= min(STALE_NOTE, limits.stale - 1):
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
        circle.add(seen(row["step"], row["digest"], row["came"], row["status"], row["repeat"]), limits)
    return circle


def seen(step: int, digest: str, came: str, status: str, repeat: str) -> Seen:
    failed = RunStatus(status) is not RunStatus.DONE
    return Seen(step, digest, came, failed, acted=not failed and Repeat(repeat) is not Repeat.REPEATABLE)


def limits(settings: Settings) -> Limits:
    return Limits(settings.repeat_failures, settings.repeat_stale)


def came(text: str) -> str:
    """The digest of a result, without a note of ours. As the statement makes it of the row."""
    return md5(text.partition(MARK)[0].encode(), usedforsecurity=False).hexdigest()


def noted(text: str, note: str) -> str:
    return f"{text}{MARK}{note}]"

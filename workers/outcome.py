"""How a claimed turn is left, and what a step of it came to: values between the loop and what it calls."""

from __future__ import annotations

from dataclasses import dataclass

from workers.recording import Ending
from workers.toolbatch import Batch


@dataclass(frozen=True, slots=True)
class Ended:
    ending: Ending


@dataclass(frozen=True, slots=True)
class Parked:
    reason: str
    wait_s: float
    why: str | None = None


@dataclass(frozen=True, slots=True)
class Released:
    """Handed back as it is: by a draining worker, or, where it `gave_way`, to a question or an admin's stop."""

    gave_way: bool = False


TurnOutcome = Ended | Parked | Released


@dataclass(frozen=True, slots=True)
class Stepped:
    """A step is recorded: its results go into the next boundary. `silent`: the model ended without a word."""

    batch: Batch
    silent: bool = False


@dataclass(frozen=True, slots=True)
class Again:
    """The boundary is looked at again: a call failed and is made again in place, or is to go elsewhere."""

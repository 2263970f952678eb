"""How a run that needs somebody else stands: it may begin, it has its answer, or the turn must wait for it."""

from __future__ import annotations

from dataclasses import dataclass

from shared.values import ParkReason
from workers.outgoing import Finished


@dataclass(frozen=True, slots=True)
class Ready:
    """Approved: it may run now."""


@dataclass(frozen=True, slots=True)
class Answered:
    """Somebody else has settled it; it does not run here."""

    finished: Finished


@dataclass(frozen=True, slots=True)
class Wait:
    """`limit_s` is how long the turn may sleep for it before it is woken without."""

    reason: ParkReason
    limit_s: float


Stand = Ready | Answered | Wait

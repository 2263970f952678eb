"""How a run that needs somebody else stands: it may begin, it has its answer, or the turn must wait for it."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from shared.values import ParkReason, RunStatus
from workers.outgoing import Finished
from workers.recording import Run


@dataclass(frozen=True, slots=True)
class Ready:
    """Approved: it may run now."""


@dataclass(frozen=True, slots=True)
class Answered:
    """Somebody else has settled it; it does not run here."""

    finished: Finished


@dataclass(frozen=True, slots=True)
class Wait:
    """`limit_s` is how long the turn may sleep for it before it is woken without; `needs` are the dollars that it waits
    for, where it waits for money, `short_of` 'budget' where it is for a cap that others share."""

    reason: ParkReason
    limit_s: float
    needs: Decimal | None = None
    short_of: str | None = None


Stand = Ready | Answered | Wait


def answered(run: Run, text: str, status: RunStatus = RunStatus.DONE) -> Answered:
    """The run's result as somebody else made it: an error for the model unless it is `done`."""
    error = status is not RunStatus.DONE
    return Answered(Finished(run.step, run.ordinal, run.call.id, run.call.name, status, text, is_error=error))

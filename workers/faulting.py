"""How a turn ends when this program itself is at fault: its call released, its open runs answered, its person told."""

from __future__ import annotations

from uuid import UUID

import structlog

from shared.errors import LeaseLost, NightshiftError, StoreUnavailable
from shared.values import CallStatus, Purpose, RunStatus, TurnStatus
from workers import gathering, recording, reserving, resuming
from workers.held import Held
from workers.outgoing import Finished
from workers.ports import Ports
from workers.recording import Ending, Outcome
from workers.reserving import Planned

log = structlog.get_logger("turn")
STOPPED = "not run: the turn ended by a fault"


def end_in_fault(ports: Ports, held: Held, error: Exception) -> Ending | None:
    """End the turn as failed, or None where the right to write is gone and somebody else will go on with it."""
    log.error("turn.fault", turn=str(held.claim.turn), error=type(error).__name__, exc_info=error)
    known = isinstance(error, NightshiftError)
    code = error.code if known else "internal_error"
    text = error.message if known else f"a fault of Nightshift ({type(error).__name__}): its log has the details"
    ending = Ending(TurnStatus.FAILED, error_code=code, error_text=text)
    try:
        _release_call(ports, held, code)
        left = resuming.left_open(ports, held)
        stopped = tuple(
            Finished(r.step, r.ordinal, r.call.id, r.call.name, RunStatus.CANCELLED, STOPPED, is_error=True)
            for r in left.runs
        )
        open_runs = sorted((*left.results, *stopped), key=lambda run: run.ordinal)
        reserving.commit_rows(ports, held, gathering.gather(held, open_runs, gathering.waiting(ports, held)))
        recording.end(ports, held, ending)
    except (LeaseLost, StoreUnavailable) as late:
        log.warning("turn.fault_not_recorded", turn=str(held.claim.turn), code=late.code)
        return None
    return ending


def _release_call(ports: Ports, held: Held, code: str) -> None:
    """A call that was reserved and whose fate we do not know is booked at its reservation, and marked assumed."""
    row = ports.database.read(
        lambda c: c.execute(
            "select id, step, purpose, estimate, reserved_usd from calls where turn = %s and status = 'reserved'",
            (held.claim.turn,),
        ).fetchone()
    )
    if row is None:
        return
    call: UUID = row[0]
    planned = Planned(call, row[1], Purpose(row[2]), b"", row[3], row[4], None, 0)
    outcome = Outcome(
        CallStatus.CUT, row[4], cost=row[4], assumed=True, rate_source="assumed: the reservation", error_code=code
    )
    recording.record(ports, held, planned, outcome)

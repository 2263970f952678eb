"""After a call that failed: booked, then made again here, on another key, with another model, later, or not again.

Everything is read off the Recovery; nothing here looks at an error.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from shared.values import EventKind, Purpose, Refund, TurnStatus
from workers import conversing, leading, prefixing, recording, routing
from workers.booking import BACKOFF
from workers.conversing import Failed
from workers.emit import emit
from workers.held import Held, Interrupt
from workers.outcome import Again, Ended, Parked, TurnOutcome
from workers.ports import Ports
from workers.providers import failures
from workers.providers.failures import GiveUp, NextMove, ParkBackoff, RetryHere
from workers.recording import Ending, Outcome
from workers.reduction import consider, spilling
from workers.reserving import Planned


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Another model of the chain is asked; the step is given back."""


def failed(ports: Ports, held: Held, planned: Planned, found: Failed) -> TurnOutcome | Again | None:
    """Book the failed call, and do what is to be done about it. None where something arrived while the turn ended."""
    recovery = found.recovery
    held.failed_tries += 1
    held.failed_purpose = planned.purpose
    outcome = conversing.failure(held, planned, found)
    if recovery.compress or recovery.spill:
        return _reduced(ports, held, planned, found, outcome)
    drop = recovery.drop_reasoning and not held.reasoning_dropped
    move = RetryHere(0) if drop else _move(ports, held, found)
    counted = planned.purpose is Purpose.MAIN
    if isinstance(move, GiveUp):
        ending = Ending(TurnStatus.FAILED, error_code=recovery.code, error_text=recovery.why)
        return Ended(ending) if recording.record(ports, held, planned, outcome, ending).ended else None
    if isinstance(move, Elsewhere) and counted:
        outcome = replace(outcome, refund=Refund.FAILOVER)
    recorded = recording.record(ports, held, planned, outcome)
    if recorded.cancel_requested:
        held.interrupt(Interrupt.CANCEL)
    wait_s = 0.0 if isinstance(move, Elsewhere) else move.wait_s
    emit(ports, held, EventKind.STEP_RESTARTED, reason=recovery.code, wait_s=round(wait_s, 2))
    leading.step_back(ports, held)
    match move:
        case Elsewhere():
            _leave(held, found, counted=counted)
        case ParkBackoff():
            recording.park(ports, held, BACKOFF, wait_s, out=True)
            return Parked(BACKOFF, wait_s)
        case RetryHere():
            if drop:
                held.reasoning_dropped = True
                prefixing.begin_epoch(ports, held, "signed reasoning was refused")
            held.wait(wait_s)
    return Again()


def _move(ports: Ports, held: Held, found: Failed) -> NextMove | Elsewhere:
    """A key that is another by now, another key, another model, this one again; in this order."""
    recovery, ticket = found.recovery, found.ticket
    if ticket is not None and held.failed_tries < failures.TRIES:
        if recovery.refresh and ports.routes.refreshed(ticket.credential):
            return RetryHere(0)
        if recovery.rotate_credential and routing.another_key(ports, held, ticket):
            return RetryHere(0)
    move = failures.next_move(recovery, held.failed_tries, random.Random())
    lasting = found.rests_s > failures.IN_PLACE_S or held.failed_tries >= routing.STRIKES
    if recovery.fall_back and routing.may_leave(ports, held) and (lasting or not isinstance(move, RetryHere)):
        return Elsewhere()
    return move


def _leave(held: Held, found: Failed, *, counted: bool) -> None:
    """What failed for good is not asked again in this turn, what failed for a while is asked last."""
    at = routing.current(held)
    if found.recovery.fatal:
        held.refused[at] = (found.recovery.code, found.recovery.why)
    else:
        held.avoided.add(at)
    held.failed_tries = 0
    if counted:
        held.failed_purpose = None


def _reduced(ports: Ports, held: Held, planned: Planned, found: Failed, outcome: Outcome) -> TurnOutcome | Again:
    """The provider's own word that the prompt does not fit counts for more than any projection: it is made shorter and
    sent again. The step that it cost is given back, and counted when it is made. A body that is too large in bytes
    loses its largest blocks, and is never summarised for it."""
    counted = planned.purpose is Purpose.MAIN
    refund = Refund.REDUCTION if counted else None
    if recording.record(ports, held, planned, replace(outcome, refund=refund)).cancel_requested:
        held.interrupt(Interrupt.CANCEL)
    if counted:
        held.failed_purpose = None
    if found.recovery.spill:
        left_out = spilling.largest(ports, held, len(planned.body))
        why = None if left_out else found.recovery.why
    else:
        why = consider.overflowed(ports, held)
    if why is not None and routing.leave(ports, held, found.recovery.code, why):
        why = None
    if why is not None:
        ending = Ending(TurnStatus.FAILED, error_code=found.recovery.code, error_text=why)
        recording.end(ports, held, ending)
        return Ended(ending)
    emit(ports, held, EventKind.STEP_RESTARTED, reason=found.recovery.code, wait_s=0.0)
    return Again()

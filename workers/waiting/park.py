"""To sleep for a reason that stands. Reason and sleeper meet on the turn's row: the reason is read again under its
lock, in a later statement."""

from __future__ import annotations

from shared.errors import LeaseLost
from shared.store.pool import Connection
from shared.store.statements import money, one, turn_end, waiting
from shared.values import ParkReason, TurnStatus
from workers import fence
from workers.held import Held, Interrupt
from workers.pause import Point
from workers.ports import Ports
from workers.recording import ended_by_us
from workers.waiting import approvals, questions
from workers.waiting.state import Wait

SPOKE = "the person wrote instead: see the message that follows"


def park(ports: Ports, held: Held, wait: Wait) -> bool:
    """Give the slot back. False where the reason is gone, or a person spoke or cancelled meanwhile: look again.

    Raises LeaseLost.
    """
    values = {
        "session": held.claim.session, "turn": held.claim.turn, "fence": held.claim.fence,
        "reason": wait.reason, "wait_s": wait.limit_s, "limit_s": wait.limit_s,
        "short_usd": wait.needs, "short_of": wait.short_of,
    }  # fmt: skip

    def work(connection: Connection) -> bool:
        with connection.transaction():
            if one(connection, turn_end.LOCK_OWN, values) is None:
                raise LeaseLost
            turn = one(connection, turn_end.LOCK_TURN, values)
            ports.pauses.at(Point.PARKING)
            if wait.reason is ParkReason.MONEY:
                one(connection, money.COME_SHORT, values)
            if one(connection, waiting.PARK_ON, values) is not None:
                return True
        fence.confirm(connection, held)
        if turn is not None and turn["cancel_requested_at"] is not None:
            held.interrupt(Interrupt.CANCEL)
        return False

    def recover(connection: Connection) -> bool | None:
        return True if ended_by_us(connection, held, TurnStatus.PARKED) else None

    return ports.database.write(work, recover=recover)


def person_spoke(ports: Ports, held: Held, reason: ParkReason) -> None:
    """What a person said ends the wait for a person: open calls are denied, open questions are answered by it."""
    if reason is ParkReason.APPROVAL:
        approvals.close(ports, held, "denied", SPOKE)
    elif reason is ParkReason.CLARIFY:
        questions.close(ports, held, "answered", SPOKE)

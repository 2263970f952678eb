"""Owns the question whether a model that was out answers again, asked before a conversation goes back to it.

A conversation that went back and found it still out would have cost an epoch there and one back. So what is free is
asked first, the provider's list of models; then a call of purpose `probe`, which holds nothing of the conversation and
is booked in its turn like any other. One goes out at a time for the fleet; what it finds is known to everybody.
"""

from __future__ import annotations

from dataclasses import replace

from shared.request import blocks
from shared.values import CallStatus, Purpose
from workers import conversing, gathering, recording, reserving, routing
from workers.held import STEERED, Held, Interrupt
from workers.ports import Ports
from workers.providers.listing import alive
from workers.recording import Outcome
from workers.reserving import Arrived, Planned
from workers.routing import Ticket

TAIL = blocks.join([blocks.text("Are you there? Answer with one word.")])


def answers(ports: Ports, held: Held, ticket: Ticket) -> bool | None:
    """Whether the link of this ticket, which is its provider's probe, answers; None where that may not be paid for. The
    ticket is used up, or given back where no call goes out. Raises LeaseLost."""
    if not alive(ticket.client):
        routing.rest(ports, held, ticket)
        return False
    held.ticket = ticket  # whoever lets go of this turn from here on gives it back
    held.wait(ticket.wait_s)  # as long as it was booked for
    with routing.lent(ports, held, ticket.link):
        planned = reserving.reserve(ports, held, gathering.NOTHING, Purpose.PROBE, tail=TAIL)
        held.forget()  # it ends with a message that no row holds
        if not isinstance(planned, Planned):
            routing.unsent(ports, held)
            return False if isinstance(planned, Arrived) else None
        outcome = _outcome(ports, held, planned)
        if recording.record(ports, held, planned, outcome).cancel_requested:
            held.interrupt(Interrupt.CANCEL)
    return outcome.status is CallStatus.SETTLED


def _outcome(ports: Ports, held: Held, planned: Planned) -> Outcome:
    match conversing.converse(ports, held, planned):
        case conversing.Answered(reply):
            return replace(
                conversing.bill(held, planned, reply), request_id=reply.request_id, stop_reason=reply.stop_reason,
                first_token_ms=reply.first_token_ms,
            )  # fmt: skip
        case conversing.Failed() as found:
            return conversing.failure(held, planned, found)
        case conversing.Cut(reason, partial):
            return conversing.cut_short(held, planned, partial, "", reason, None)
        case conversing.Steered(partial):  # never: it is cut by nobody's words
            return conversing.cut_short(held, planned, partial, "", STEERED, None)

"""The summariser's call: the session's own request with one more message at its end, reserved, sent and booked like any
other. What comes back is checked before anybody believes it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from shared.errors import LeaseLost
from shared.providers import chains
from shared.values import EventKind, Purpose
from workers import conversing, gathering, recording, reserving, routing
from workers.compaction import checks, instruction, rest
from workers.compaction.material import Seen
from workers.compaction.span import Span
from workers.emit import emit
from workers.held import STEERED, Held, Interrupt
from workers.pause import Point
from workers.ports import Ports
from workers.providers.replies import Reply
from workers.recording import Outcome
from workers.reserving import Arrived, Planned, Refusal, Short


@dataclass(frozen=True, slots=True)
class Said:
    """The model's summary, checked."""

    text: str


@dataclass(frozen=True, slots=True)
class Unsaid:
    """There is none: `code` is of `checks`, of the wire, or of what could not be reserved. The summariser is left alone
    for `rest_s` seconds. `elsewhere`: another model may do what this one could not."""

    code: str
    rest_s: float = 0.0
    elsewhere: bool = False


@dataclass(frozen=True, slots=True)
class Stopped:
    """The turn has to stop; the call is booked as far as it went."""

    reason: Interrupt


def summarise(
    ports: Ports, held: Held, seen: Seen, found: Span, budget: int, failures: int, memory: str | None, until: str | None
) -> Said | Unsaid | Stopped:
    """Ask the models of the auxiliary chain, one after another, until one has answered; `memory` names the one that it
    may write. Raises LeaseLost. The holder's memory of the request is gone afterwards."""
    said: Said | Unsaid | Stopped = Unsaid("no_summariser")
    for link in dict.fromkeys(chains.auxiliary(ports.settings.auxiliary)):
        with routing.lent(ports, held, link):
            said = _ask(ports, held, seen, found, budget, failures, memory, until)
        if not (isinstance(said, Unsaid) and said.elsewhere):
            return said
    return said


def _ask(
    ports: Ports, held: Held, seen: Seen, found: Span, budget: int, failures: int, memory: str | None, until: str | None
) -> Said | Unsaid | Stopped:
    tail = instruction.tail(budget, held.claim.tools, memory, until)
    planned = reserving.reserve(ports, held, gathering.NOTHING, Purpose.SUMMARY, tail=tail)
    held.forget()  # it ends with a message that no row holds
    match planned:
        case Refusal(code):
            return Unsaid(code, elsewhere=True)
        case Short(scope):  # a summary is not what a turn waits for money for
            return Unsaid(f"{scope}_cap_reached")
        case Arrived():
            return Unsaid("interrupted")
        case Planned():
            pass
    emit(ports, held, EventKind.STEP_STARTED, purpose=planned.purpose)
    ports.pauses.at(Point.RESERVED)
    match conversing.converse(ports, held, planned):
        case conversing.Answered(reply):
            return _answered(ports, held, planned, reply, _against(held, seen, found, budget, reply), failures)
        case conversing.Failed(recovery) as failed:
            _book(ports, held, planned, conversing.failure(held, planned, failed))
            return Unsaid(recovery.code, rest.after_error(recovery, failures), recovery.fall_back)
        case conversing.Cut(reason, partial):
            _book(ports, held, planned, conversing.cut_short(held, planned, partial, "", reason, None))
            if reason is Interrupt.LOST:
                raise LeaseLost
            return Stopped(reason)
        case conversing.Steered(partial):  # never: it is cut by nobody's words
            _book(ports, held, planned, conversing.cut_short(held, planned, partial, "", STEERED, None))
            return Unsaid("interrupted")


def _answered(
    ports: Ports, held: Held, planned: Planned, reply: Reply, given: checks.Given, failures: int
) -> Said | Unsaid:
    """Paid for either way; believed only where no check refuses it."""
    why = checks.refuse(given)
    money = conversing.bill(held, planned, reply)
    outcome = replace(
        money, request_id=reply.request_id, stop_reason=reply.stop_reason, first_token_ms=reply.first_token_ms,
        error_code=why,
    )  # fmt: skip
    _book(ports, held, planned, outcome)
    return Said(given.text) if why is None else Unsaid(why, rest.after_reply(failures))


def _against(held: Held, seen: Seen, found: Span, budget: int, reply: Reply) -> checks.Given:
    """An earlier summary may come back word for word: it is to be taken in."""
    rows = {row.id for row in seen.rows}
    sent = [block for piece in seen.request.pieces if piece.id in rows for block in piece.blocks]
    return checks.Given(reply, budget, found.tokens, held.claim.model, checks.texts(sent))


def _book(ports: Ports, held: Held, planned: Planned, outcome: Outcome) -> None:
    if recording.record(ports, held, planned, outcome).cancel_requested:
        held.interrupt(Interrupt.CANCEL)
    ports.pauses.at(Point.RECORDED)

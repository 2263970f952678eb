"""One call to the provider: deltas to the stream, and what came of it as a value. Nothing of a turn is
written to Postgres here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from typing import Any, assert_never, cast
from uuid import UUID

import orjson
import structlog

from shared.request import blocks, estimate
from shared.store import windows
from shared.values import CallStatus, EventKind, Purpose, Refund
from workers import leading, routing
from workers.emit import emit
from workers.held import STEERED, Held, Interrupt
from workers.pause import Point
from workers.ports import Ports
from workers.providers import answered_by, failures, prices, replies, wire
from workers.providers.failures import Recovery
from workers.providers.faults import CallCut, CallFailed
from workers.providers.replies import Partial, Reasoning, Reply, Text, ToolCall, Usage
from workers.recording import Outcome, Run
from workers.reserving import Planned
from workers.routing import Ticket
from workers.tracing import Traced

PROBE_S = 20.0
"""How long a probe's first byte is waited for: its turn could be answered elsewhere meanwhile."""
_FAR_OFF = 8
"""The estimate counts too much on purpose; a bill of so many times as much is no bill for this request."""

_DOUBTS = {
    "usage_missing": "the provider told no usage",
    "usage_absurd": "the provider told a usage that is no count of tokens",
    "usage_zero": "the provider told a usage of nothing read or nothing written",
    "usage_too_small": "the provider told a usage too small for what it wrote",
    "usage_too_large": "the provider told a usage beyond what this call can have been",
}
log = structlog.get_logger("conversing")


@dataclass(frozen=True, slots=True)
class Answered:
    reply: Reply


@dataclass(frozen=True, slots=True)
class Failed:
    """`ticket` is None where nothing went out. `rests_s`: for how long its key or its provider is left alone."""

    recovery: Recovery
    error: CallFailed
    ticket: Ticket | None = None
    rests_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Cut:
    """Stopped by us: cancel, deadline, a drain whose patience is over, or a lost lease."""

    reason: Interrupt
    partial: Partial


@dataclass(frozen=True, slots=True)
class Steered:
    """Cut because a person said something that this call has not read. The turn goes on."""

    partial: Partial


def converse(ports: Ports, held: Held, planned: Planned) -> Answered | Failed | Cut | Steered:
    """Send the reserved call and read its stream. Raises nothing of the wire."""
    came = _converse(ports, held, planned)
    if ports.content is not None:
        ports.content.put(_traced(held, planned, came))
    return came


def _converse(ports: Ports, held: Held, planned: Planned) -> Answered | Failed | Cut | Steered:
    ports.pauses.at(Point.BEFORE_CALL)
    settings = ports.settings
    # The words of an aside are no answer, and it reads no person's: nobody is shown it.
    probe = planned.purpose is Purpose.PROBE
    aside = probe or planned.purpose in (Purpose.SUMMARY, Purpose.PING, Purpose.TITLE)
    ticket = _ticket(ports, held, aside=aside and not probe)
    if isinstance(ticket, CallFailed):
        return Failed(failures.classify(ticket), ticket)
    if len(planned.body) > MOST_BYTES:
        held.ticket = ticket
        routing.unsent(ports, held)
        told = CallFailed(too_large(planned.body), code="body_too_large")
        return Failed(failures.classify(told), told)
    first_byte_s = min(settings.first_byte_timeout_s, PROBE_S) if probe else settings.first_byte_timeout_s
    cancel = held.calling(steerable=not aside)
    try:
        reply = wire.stream(
            ticket.client,
            planned.body,
            sink=_Sink(ports, held, aside=aside, leads=not (probe or held.lent)),
            cancel=cancel,
            timeouts=wire.Timeouts(first_byte_s=first_byte_s, between_s=settings.read_timeout_s),
            heard=partial(routing.heard, ports, held, ticket),
            target=wire.Target(held.claim.model, streamed=settings.provider_streams),
        )
    except CallCut as cut:
        routing.cut(ports, held, ticket, began=cut.partial.began)
        reason = held.interrupted()
        if cut.reason == STEERED and reason in (None, Interrupt.DRAIN, Interrupt.YIELD):
            return Steered(cut.partial)
        return Cut(reason or Interrupt.CANCEL, cut.partial)
    except CallFailed as error:
        recovery = failures.classify(error)
        if recovery.compress:
            _learn_window(ports, held, planned.id, error.said)
        began = error.http_status == 200 or error.partial.began
        rests_s = routing.failed(ports, held, ticket, recovery, error.limits, began=began)
        return Failed(recovery, error, ticket, rests_s)
    finally:
        held.called()
    routing.answered(ports, held, ticket, reply.limits, reply.usage)
    ports.pauses.at(Point.AFTER_CALL)
    return Answered(reply)


def _traced(held: Held, planned: Planned, came: Answered | Failed | Cut | Steered) -> Traced:
    match came:
        case Answered(reply):
            said, ended = reply.text, str(reply.stop_reason)
        case Failed(recovery, error):
            said, ended = error.partial.text, recovery.code
        case Cut(reason, partial):
            said, ended = partial.text, f"cut_{reason}"
        case Steered(partial):
            said, ended = partial.text, f"cut_{STEERED}"
    calls = came.reply.tool_calls if isinstance(came, Answered) else ()
    return Traced(
        held.claim.session, held.claim.turn, planned.id, planned.step, planned.purpose, held.claim.model, planned.body,
        said, tuple((call.name, call.arguments_text) for call in calls), ended,
    )  # fmt: skip


def _learn_window(ports: Ports, held: Held, call: UUID, said: str) -> None:
    """The prompt was too long, and the provider may have said how long one may be."""
    claim = held.claim
    learned = ports.database.read(lambda c: windows.learn(c, ports.settings, claim.provider, claim.model, call, said))
    if learned is not None:
        held.limits = learned


def _ticket(ports: Ports, held: Held, *, aside: bool) -> Ticket | CallFailed:
    """The call that the step has booked; one that stands beside it books its own and waits for it, but never long."""
    if not aside:
        ticket = held.ticket
        if ticket is not None and ticket.link == routing.current(held):
            held.ticket = None
            return ticket
        routing.unsent(ports, held)
    wait_s = 0.0
    for _ in range(3):
        got = routing.aside(ports, held)
        if isinstance(got, routing.Nobody):
            return CallFailed(got.why, code=got.code)
        wait_s = got.wait_s
        if wait_s > failures.IN_PLACE_S:
            break
        if wait_s:
            held.wait(wait_s)
        if isinstance(got, Ticket):
            return got
    return CallFailed("the provider takes no calls now", code="provider_resting", retry_after_s=wait_s)


MOST_BYTES = 30_000_000
"""A larger body is not sent: providers refuse one above 32 MB, some after reading it whole (issue; Anthropic)."""
_NAMED = 3


def too_large(body: bytes) -> str:
    """Why a body is not sent, with its largest blocks by their place, kind and size: none of their words."""
    sizes: list[tuple[int, str]] = []
    value: dict[str, Any] = orjson.loads(body)
    messages: list[dict[str, Any]] = value.get("messages") or value.get("input") or []
    for at, message in enumerate(messages):
        content: Any = message.get("content", message.get("output"))
        parts = cast("list[Any]", content) if isinstance(content, list) else [content]
        for number, block in enumerate(parts):
            told = cast("dict[str, Any]", block).get("type", "part") if isinstance(block, dict) else "text"
            sizes.append((len(orjson.dumps(block)), f"{str(told)[:40]} {number} of message {at}"))
    named = ", ".join(f"{name} ({size / 1e6:.1f} MB)" for size, name in sorted(sizes, reverse=True)[:_NAMED])
    return f"the request has {len(body) / 1e6:.1f} MB and at most 30 may be sent; its largest blocks: {named}"


class _Sink:
    """Deltas to events. Holds the name of nothing else: what is streamed is shown, never stored."""

    def __init__(self, ports: Ports, held: Held, *, aside: bool, leads: bool) -> None:
        self._ports = ports
        self._held = held
        self._aside = aside
        self._leads = leads  # what goes elsewhere, or without tools, warms nothing that others share

    def __call__(self, delta: replies.Delta) -> None:
        match delta:
            case replies.Began():
                if self._leads:
                    leading.warmed(self._ports, self._held)
            case _ if self._aside:
                self._ports.pauses.at(Point.IN_STREAM)
            case replies.TextDelta(text):
                emit(self._ports, self._held, EventKind.TEXT_DELTA, text=text)
                self._ports.pauses.at(Point.IN_STREAM)
            case replies.ReasoningDelta(text):
                emit(self._ports, self._held, EventKind.REASONING_DELTA, text=text)
            case replies.ReasoningStarted():
                emit(self._ports, self._held, EventKind.THINKING_STARTED)
            case replies.ReasoningStopped():
                emit(self._ports, self._held, EventKind.THINKING_STOPPED)
            case replies.ToolPreparing():
                emit(self._ports, self._held, EventKind.TOOL_PREPARING, tool=delta.name)
            case _:
                pass  # when the first token came is in the reply


def content_of(reply: Reply) -> tuple[str | None, str | None]:
    """(content, reasoning) as stored: the blocks a person reads, and signed reasoning with its place among all blocks.

    Blank text is left out: the provider refuses it when it comes back. None where nothing is left.
    """
    kept: list[str] = []
    sealed: list[tuple[int, str]] = []
    for block in reply.blocks:
        place = len(kept) + len(sealed)
        match block:
            case Text(text):
                if text.strip():
                    kept.append(blocks.text(text))
            case ToolCall():
                kept.append(blocks.tool_use(block.id, block.name, block.sent_arguments))
            case Reasoning():
                sealed.append((place, block.raw_block_text))
    if not kept:
        return None, None
    return blocks.join(kept), blocks.reasoning(sealed) if sealed else None


def doubt(held: Held, planned: Planned, reply: Reply) -> str | None:
    """Why the bill of this reply is not believed; None where it is. One beyond what the call can have been, taken
    for true, booked hundreds of dollars and left its session without room for another call for ever."""
    usage = reply.usage
    if usage is None:
        return next((note for note in reply.notes if note in _DOUBTS), "usage_missing")
    known = held.limits
    most_read = known.window if known.known else _FAR_OFF * planned.estimate + 20_000
    most_written = known.max_output if known.known else 1_000_000
    return "usage_too_large" if usage.prompt > most_read or usage.output > most_written else None


def bill(held: Held, planned: Planned, reply: Reply, now: datetime | None = None) -> Outcome:
    """A settled call's money. Usage that is missing, or that cannot be, is unknown, and its reservation is what the
    caps are charged; the call's `rate_source` says why."""
    why = doubt(held, planned, reply)
    if why is not None:
        log.warning(
            "usage.doubted", session=str(held.claim.session), turn=str(held.claim.turn), call=str(planned.id), why=why
        )
    usage = reply.usage if why is None else None
    at, claim = now or datetime.now(UTC), held.claim
    cost = answered_by.price(claim.model, reply.model, usage, at, provider=claim.provider, own=held.prices)
    return Outcome(
        CallStatus.SETTLED,
        spent=planned.reserve if cost.usd is None else cost.usd,
        usage=usage,
        cost=cost.usd,
        unknown=cost.usd is None,
        rate_source=cost.source if why is None else _DOUBTS[why],
    )


def failure(held: Held, planned: Planned, found: Failed) -> Outcome:
    """A call that failed, as it will be recorded."""
    recovery, error = found.recovery, found.error
    spent, cost, source = assumed(held, planned, error.partial)
    return Outcome(
        CallStatus.FAILED, spent, usage=error.partial.usage, cost=cost, assumed=error.partial.began,
        unknown=cost is None, rate_source=source, error_code=recovery.code, error_text=recovery.why,
        request_id=error.request_id,
    )  # fmt: skip


def settled(money: Outcome, reply: Reply, content: str | None, reasoning: str | None, runs: Sequence[Run]) -> Outcome:
    """A whole reply as it will be recorded: the step is done."""
    return replace(
        money, content=content, reasoning=reasoning, step_done=True, request_id=reply.request_id,
        stop_reason=reply.stop_reason, first_token_ms=reply.first_token_ms, runs=runs,
    )  # fmt: skip


def cut_short(held: Held, planned: Planned, partial: Partial, text: str, why: str, refund: Refund | None) -> Outcome:
    """A call that we stopped, as it will be recorded: `text` is what of it stays, and makes a step where it is not
    blank."""
    spent, cost, source = assumed(held, planned, partial)
    kept = bool(text.strip())
    return Outcome(
        CallStatus.CUT, spent, usage=partial.usage, cost=cost, assumed=True, unknown=cost is None, rate_source=source,
        content=blocks.join([blocks.text(text)]) if kept else None, cut=kept, step_done=kept, error_code=f"cut_{why}",
        refund=refund,
    )  # fmt: skip


def aside(held: Held, planned: Planned, came: Answered | Failed | Cut | Steered) -> Outcome:
    """What is recorded of a call that stands beside the conversation: its bill, and nothing that was said."""
    match came:
        case Answered(reply):
            return settled(bill(held, planned, reply), reply, None, None, ())
        case Failed(recovery, error):
            spent, cost, source = assumed(held, planned, error.partial)
            return Outcome(
                CallStatus.FAILED, spent, usage=error.partial.usage, cost=cost, assumed=error.partial.began,
                unknown=cost is None, rate_source=source, error_code=recovery.code, error_text=recovery.why,
                request_id=error.request_id,
            )  # fmt: skip
        case Cut(reason, partial):
            return cut_short(held, planned, partial, "", reason, None)
        case Steered(partial):
            return cut_short(held, planned, partial, "", STEERED, None)
        case _:
            assert_never(came)


def tokens(usage: Usage | None) -> dict[str, int] | None:
    """Usage in the four buckets that people see; None where the provider told none."""
    if usage is None:
        return None
    return {
        "input": usage.input, "output": usage.output, "cache_read": usage.cache_read,
        "cache_write": usage.cache_write_5m + usage.cache_write_1h,
    }  # fmt: skip


def assumed(held: Held, planned: Planned, partial: Partial) -> tuple[Decimal, Decimal | None, str]:
    """(spent, cost, source) of a call that ended early: the prompt as billed, the output as far as it was seen.

    Where the provider had not begun to answer, nothing was generated and nothing is booked.
    """
    if not partial.began:
        return Decimal(0), Decimal(0), "not begun: nothing is billed"
    output = estimate.estimate_text(partial.text, held.claim.model) if partial.text else 0
    seen = partial.usage or Usage(cache_write_5m=planned.prompt_tokens)
    usage = Usage(
        seen.input, max(seen.output, output), seen.cache_read, seen.cache_write_5m, seen.cache_write_1h, seen.reasoning
    )
    cost = prices.price(held.claim.model, usage, datetime.now(UTC), provider=held.claim.provider, own=held.prices)
    if cost.usd is None:
        return planned.reserve, None, cost.source
    # Nothing is reserved where the worst case has no price, which says nothing of what a call has cost.
    usd = min(cost.usd, planned.reserve) if planned.reserve else cost.usd
    return usd, usd, f"assumed: {cost.source}"

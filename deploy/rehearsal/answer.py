"""Owns one call of `POST /v1/messages`, from its first byte in to its last byte out, and its row in the ledger.

Invariant: what a call wrote to the cache becomes readable with the first byte of its reply, never before.
"""

import asyncio
import math
import time
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from typing import Any, Final

from deploy.rehearsal import capture, events, faults, ledger, limits
from deploy.rehearsal.admit import Admitted, key_of, read_json, session_of
from deploy.rehearsal.cache import Bill, Pending
from deploy.rehearsal.checks.limits import thinks
from deploy.rehearsal.errors import Refused
from deploy.rehearsal.http import Exchange, Header, HttpRequest
from deploy.rehearsal.loose import Json, is_object, object_or_empty
from deploy.rehearsal.policies import plan
from deploy.rehearsal.reply import FaultKind, Reply
from deploy.rehearsal.speech import NATIVE, Speech
from deploy.rehearsal.world import World

JSON_TYPE: Final[Header] = ("content-type", "application/json")
HANG_UP_ROUNDS: Final = 5
_LIMITS: Final = ("max_tokens", "max_completion_tokens", "max_output_tokens", "maxTokens")


async def messages(
    world: World, http: HttpRequest, exchange: Exchange, speech: Speech = NATIVE, beside: Json | None = None
) -> None:
    """Answer one call in the wire that it came in. `beside` is what the address says of it."""
    started = world.now()
    call = ledger.Call(
        index=0,
        session=None,
        model="",
        stream=False,
        request_id=world.new_request_id(),
        started=time.monotonic(),
        started_wall=time.time(),
        retry_count=http.headers.get("x-stainless-retry-count"),
        at=started,
    )
    parsed: Any = None
    refusal: Refused | None = None
    try:
        parsed = read_json(http)
        parsed = {**parsed, **beside} if beside and is_object(parsed) else parsed
    except Refused as error:
        refusal = error
    _describe(call, parsed)
    world.ledger.open(call)
    world.note_change()
    # What remains if neither a reply nor a refusal came: a bug, told on stderr.
    state = "broken"
    try:
        await _settle_overlap(world, call)
        if world.capture_to is not None:
            capture.keep(world.capture_to, call, http, world.capture_headers)
        if refusal is not None:
            raise refusal
        key = key_of(http)
        call.key = sha256(key.encode("utf-8", "replace")).hexdigest()[:8]
        if _refused_now(world, exchange, call, key, speech):
            state = "refused"
            return
        admitted = speech.admit(http, speech.lay_out(parsed), key, world.windows)
        await _reply(world, http, exchange, call, admitted, started, speech)
        state = call.state if call.state != "open" else "done"
    except Refused as error:
        faults.refuse(exchange, call, speech, error.kind, error.message, error.status, code=error.code)
        state = "refused"
    except asyncio.CancelledError:
        state = "client_closed"
        raise
    finally:
        world.ledger.close(call, state)
        world.note_change()


def _refused_now(world: World, exchange: Exchange, call: ledger.Call, key: str, speech: Speech) -> bool:
    """Whether the service is out, or the key has asked too often; then that is the answer."""
    if world.limits.down is not None:
        call.error = "down"
        if world.limits.down:
            faults.refuse(exchange, call, speech, "api_error", "Service unavailable", world.limits.down)
        else:
            exchange.cut()
        return True
    now = world.now()
    standing = world.limits.ask(key, now)
    if speech.tells_limits:
        call.told = limits.native(standing, now) if speech is NATIVE else limits.foreign(standing, now)
    if standing is None or standing.allowed:
        return False
    extra = [("retry-after", str(math.ceil(standing.retry_s))), *call.told]
    faults.refuse(exchange, call, speech, "rate_limit_error", faults.MESSAGES[429], 429, extra)
    return True


async def _settle_overlap(world: World, call: ledger.Call) -> None:
    """Overlap is real only if the session's other call is still there once hang-ups already received were handled."""
    for _ in range(HANG_UP_ROUNDS):
        if not world.ledger.others(call):
            return
        await asyncio.sleep(0)
    for other in world.ledger.others(call):
        other.overlap = call.overlap = True


def _describe(call: ledger.Call, parsed: Any) -> None:
    call.session = session_of(parsed)
    if is_object(parsed):
        given: dict[str, Any] = parsed
        call.model = str(given.get("model", ""))
        call.stream = given.get("stream") is True
        given = {**given, **object_or_empty(given.get("inferenceConfig"))}
        limit = next((given[name] for name in _LIMITS if name in given), None)
        call.max_tokens = limit if isinstance(limit, int) else None


async def _reply(
    world: World,
    http: HttpRequest,
    exchange: Exchange,
    call: ledger.Call,
    admitted: Admitted,
    started: float,
    speech: Speech,
) -> None:
    world.ledger.compare(call, admitted.prefix)
    bill, pending = world.cache.open(admitted.prefix, admitted.contexts, started)
    if speech.caches_by_itself and not admitted.model.rates.write_5m:  # written without a fee: it is not told
        bill = replace(bill, input=bill.input + bill.write_5m, write_5m=0)
    if call.max_tokens == 0:
        reply, call.answered_by = Reply(), "pre-warm"
    else:
        found = world.scripts.pick(call.session, admitted.request, http.body)
        reply, call.answered_by = found if found is not None else plan.decide(admitted.request)
    await _pause(call, reply.delay_s)
    if reply.fault is None:
        await world.gate.wait()
    if reply.fault is not None and await faults.instead(exchange, call, speech, reply.fault, admitted):
        return
    call.hit = bill.hit
    call.bill = bill
    message = _compose(admitted, reply, bill, call)

    def begin() -> None:
        _begin(world, call, pending)

    if call.stream:
        await _stream(exchange, call, reply, message, begin, admitted, speech)
        return
    begin()
    _book(call, admitted, message.output)
    with_usage = reply.fault is None or reply.fault.kind is not FaultKind.NO_USAGE
    head, body = headers(call, JSON_TYPE, speech), speech.whole(message, with_usage)
    if reply.fault is None or not await faults.plain(exchange, call, speech, reply.fault, head, body):
        exchange.answer(200, head, body)


async def _pause(call: ledger.Call, delay_s: float) -> None:
    """Time to the first byte, counted from the request's arrival."""
    left = call.started + delay_s - time.monotonic()
    if delay_s and left > 0:
        await asyncio.sleep(left)


def _compose(admitted: Admitted, reply: Reply, bill: Bill, call: ledger.Call) -> events.Message:
    model = admitted.model
    limit = min(admitted.request["max_tokens"], max(1, model.context - bill.prompt))
    number = call.request_id.removeprefix("req_")
    if admitted.request["max_tokens"] == 0:
        return events.Message(f"msg_{number}", model.name, (), "max_tokens", 0, bill)
    thinking = object_or_empty(admitted.request.get("thinking"))
    if reply.thinking is None and thinks(admitted.request, model):
        reply = plan.with_thinking(reply)
    show = thinking.get("display") != "omitted"
    chain = admitted.prefix.chains[-1]
    return events.compose(reply, model, bill, number, chain, limit, show)


def _begin(world: World, call: ledger.Call, pending: Pending) -> None:
    call.status = 200
    call.first_byte = time.monotonic()
    world.cache.commit(pending)
    world.note_change()


def _book(call: ledger.Call, admitted: Admitted, output: int) -> None:
    assert call.bill is not None
    call.output = output
    call.nanos = ledger.cost_nanos(admitted.model, call.bill, output)


def headers(call: ledger.Call, content_type: Header, speech: Speech) -> list[Header]:
    return [content_type, (speech.id_header, call.request_id), *call.told]


async def _stream(
    exchange: Exchange,
    call: ledger.Call,
    reply: Reply,
    message: events.Message,
    begin: Callable[[], None],
    admitted: Admitted,
    speech: Speech,
) -> None:
    fault = reply.fault
    ready = speech.pieces(message, fault is None or fault.kind is not FaultKind.NO_USAGE)
    begin()
    if fault is None and not reply.gap_s:
        _book(call, admitted, message.output)
        exchange.whole_stream(200, headers(call, ("content-type", speech.stream_type), speech), b"".join(ready))
        return
    _book(call, admitted, 1)
    exchange.begin(200, headers(call, ("content-type", speech.stream_type), speech), ready[0])
    for number, piece in enumerate(ready[1:-1]):
        if fault is not None and fault.after_chunks == number and await faults.amid(exchange, call, speech, fault):
            return
        if reply.gap_s:
            await asyncio.sleep(reply.gap_s)
        await exchange.send(piece)
        # What was streamed is what a cut call has cost so far.
        _book(call, admitted, max(1, message.output * (number + 1) // (len(ready) - 2)))
    if fault is not None and fault.after_chunks >= len(ready) - 2 and await faults.amid(exchange, call, speech, fault):
        return
    _book(call, admitted, message.output)
    exchange.finish(ready[-1])

"""Owns the faults: what comes instead of a reply, and what goes wrong in the middle of one."""

import asyncio
from typing import Final, assert_never

import orjson

from deploy.rehearsal.admit import Admitted
from deploy.rehearsal.errors import STATUS_OF, TYPE_OF
from deploy.rehearsal.http import Exchange, Header
from deploy.rehearsal.ledger import Call
from deploy.rehearsal.reply import Fault, FaultKind
from deploy.rehearsal.speech import Speech

MESSAGES: Final = {
    429: "This request would exceed the rate limit for your organization.",
    500: "Internal server error",
    529: "Overloaded",
}
PAGE: Final = (
    b"<!DOCTYPE html><html><head><title>Bad gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>"
)
FLOOD_PIECE: Final = 64_000


def refuse(
    exchange: Exchange,
    call: Call,
    speech: Speech,
    kind: str,
    message: str,
    status: int,
    extra: list[Header] | None = None,
    code: str | None = None,
) -> None:
    """An error answer in the service's shape."""
    status = speech.status_of(status)
    call.status = status
    call.error = message
    headers: list[Header] = [("content-type", "application/json"), (speech.id_header, call.request_id), *(extra or [])]
    headers += speech.error_headers(kind)
    exchange.answer(status, headers, orjson.dumps(speech.error(kind, message, call.request_id, code)))


async def instead(exchange: Exchange, call: Call, speech: Speech, fault: Fault, admitted: Admitted) -> bool:
    """Act out a fault that takes the reply's place; False when this one strikes later."""
    call.state = "fault"
    match fault.kind:
        case FaultKind.STATUS:
            kind = fault.error_type or TYPE_OF.get(fault.status, "api_error")
            extra = [] if fault.retry_after is None else [("retry-after", f"{fault.retry_after:g}")]
            refuse(
                exchange, call, speech, kind, fault.message or MESSAGES.get(fault.status, "Error"), fault.status, extra
            )
        case FaultKind.OVERFLOW:
            window = admitted.model.context
            text = f"prompt is too long: {window + 5000} tokens > {window} maximum"
            code = "context_length_exceeded" if speech.caches_by_itself else None
            refuse(exchange, call, speech, "invalid_request_error", text, 400, code=code)
        case FaultKind.HTML:
            call.status, call.error = fault.status, "html"
            exchange.answer(fault.status, [("content-type", "text/html")], PAGE)
        case FaultKind.REDIRECT:
            call.status, call.error = 302, "redirect"
            exchange.answer(302, [("location", fault.location)], b"")
        case FaultKind.NOTHING:
            call.error = "nothing"
            exchange.cut()
        case (
            FaultKind.STALL
            | FaultKind.CUT
            | FaultKind.CLEAN_EOF
            | FaultKind.ERROR_EVENT
            | FaultKind.NO_USAGE
            | FaultKind.FLOOD
            | FaultKind.GARBAGE
        ):
            call.state = "open"
            return False
        case _:
            assert_never(fault.kind)
    return True


async def amid(exchange: Exchange, call: Call, speech: Speech, fault: Fault) -> bool:
    """Act out a fault in the middle of a stream; True when the stream ends with it."""
    match fault.kind:
        case FaultKind.STALL:
            await asyncio.sleep(fault.seconds)
            return False
        case FaultKind.FLOOD:
            await _flood(exchange, speech, fault)
            return False
        case FaultKind.NO_USAGE:
            return False
        case FaultKind.CUT:
            exchange.cut()
        case FaultKind.CLEAN_EOF:
            exchange.finish()
        case FaultKind.ERROR_EVENT:
            kind = fault.error_type or "overloaded_error"
            message = fault.message or MESSAGES.get(STATUS_OF.get(kind, 500), "Overloaded")
            exchange.finish(speech.error_event(kind, message, call.request_id))
        case FaultKind.GARBAGE:
            exchange.finish(speech.garbage)
        case FaultKind.STATUS | FaultKind.OVERFLOW | FaultKind.HTML | FaultKind.REDIRECT | FaultKind.NOTHING:
            return False
        case _:
            assert_never(fault.kind)
    call.state = "fault"
    call.error = fault.kind.value
    return True


async def plain(
    exchange: Exchange, call: Call, speech: Speech, fault: Fault, headers: list[Header], body: bytes
) -> bool:
    """Act out a fault that belongs to streams in a plain answer; True when that was the answer."""
    match fault.kind:
        case FaultKind.STALL:
            await asyncio.sleep(fault.seconds)
            return False
        case FaultKind.NO_USAGE:
            return False
        case FaultKind.CUT:
            exchange.answer_half(200, headers, body)
        case FaultKind.CLEAN_EOF:
            exchange.answer(200, headers, body[: len(body) // 2])
        case FaultKind.GARBAGE:
            exchange.answer(200, headers, b"{not json")
        case FaultKind.FLOOD:
            exchange.answer(200, headers, _flooded(body, fault.bytes))
        case FaultKind.ERROR_EVENT:
            kind = fault.error_type or "overloaded_error"
            refuse(exchange, call, speech, kind, fault.message or MESSAGES[529], STATUS_OF.get(kind, 500))
        case FaultKind.STATUS | FaultKind.OVERFLOW | FaultKind.HTML | FaultKind.REDIRECT | FaultKind.NOTHING:
            return False
        case _:
            assert_never(fault.kind)
    call.state, call.error = "fault", call.error or fault.kind.value
    return True


async def _flood(exchange: Exchange, speech: Speech, fault: Fault) -> None:
    """More deltas in the block that is open, or pings. Ends early where the client hangs up."""
    sent = 0
    while sent < fault.bytes:
        size = min(FLOOD_PIECE, fault.bytes - sent)
        await exchange.send(speech.flood(fault.of.value, "rehearsal flood " * (size // 16 + 1)))
        sent += size


def _flooded(body: bytes, size: int) -> bytes:
    """The answer with so many bytes more in its text, whichever member of it that is."""
    said = next((mark for mark in (b'"text":"', b'"content":"') if mark in body), b"")
    return body.replace(said, said + b"rehearsal flood " * (size // 16), 1)

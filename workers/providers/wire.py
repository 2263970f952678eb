"""Owns one streamed call: bytes out, deltas to the sink, one whole Reply or one error. Retries belong to the caller.

Invariant: whatever the other side sends or withholds, `stream` returns or raises within its time-outs, holds no more of
the reply than its bounds, and leaves no connection behind.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import anthropic
import httpx2

from workers.providers import aws, events, sizes, translate
from workers.providers.assembly import Assembly, BadStream, TooLarge, UnexpectedBlock
from workers.providers.client import READ_S, Client, Provider, Target, close_client, open_client, post
from workers.providers.faults import CallCut, CallFailed, Limits, ProviderCut
from workers.providers.reading import Reader, parser, reader
from workers.providers.replies import Delta, Reply
from workers.providers.sockets import Cancel, Line, in_call
from workers.providers.transport import ENCODING

__all__ = [
    "CallCut",
    "CallFailed",
    "Cancel",
    "Client",
    "Provider",
    "ProviderCut",
    "Target",
    "Timeouts",
    "close_client",
    "open_client",
    "stream",
]

BYTES_LIMIT = 64 * 1024 * 1024
"""Of one answer, as it comes over the socket, whatever was asked for."""
ERROR_BYTES = 1024 * 1024
REST_BYTES = 64 * 1024
REST_S = 1.0
"""How long a finished stream may take to end, so that its connection can be used again."""
HOUR_MARK = b'"ttl":"1h"'
"""Can only stand in a body as a mark: inside a text its quotes are escaped."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds. `between_s` is the longest silence inside a stream, `first_byte_s` before it; neither is above 90."""

    first_byte_s: float = READ_S
    between_s: float = 60.0
    total_s: float = 1_800.0
    connect_s: float = 5.0
    write_s: float = 30.0


@dataclass(slots=True)
class _Call:
    """One call in flight."""

    client: Client
    body: bytes
    line: Line
    made: Assembly
    reader: Reader
    target: Target
    response: httpx2.Response | None = None
    heard: Callable[[Limits], None] | None = None

    def context(self) -> translate.Context:
        headers = self.response.headers if self.response is not None else httpx2.Headers()
        return translate.Context(
            key=self.client.provider.api_key,
            line=self.line,
            partial=self.made.partial(),
            request_id=translate.request_id(headers),
            limits=translate.kept_headers(headers),
        )


def stream(
    client: Client,
    body: bytes,
    *,
    sink: Callable[[Delta], None],
    cancel: Cancel,
    timeouts: Timeouts | None = None,
    heard: Callable[[Limits], None] | None = None,
    target: Target | None = None,
) -> Reply:
    """The reply to `body`, the whole request as it goes out (with `"stream":true`, or `target` to say so). `heard` is
    told what the head of an answer says of limits when that is here, before the rest has come.

    Raises CallFailed (ProviderCut once the answer had begun) and CallCut when `cancel` was used. What `sink` raises
    ends the call and is passed on.
    """
    bounds = timeouts or Timeouts()
    began = time.monotonic()
    asked = sizes.asked_for(body)
    line = Line(
        cancel=cancel,
        connect_s=bounds.connect_s,
        write_s=bounds.write_s,
        between_s=min(bounds.between_s, READ_S),
        next_by=began + min(bounds.first_byte_s, READ_S),
        ends_at=began + bounds.total_s,
        room=BYTES_LIMIT if asked is None else min(BYTES_LIMIT, sizes.most_bytes(asked)),
    )
    made = Assembly(sink, since_ms=lambda: (time.monotonic() - began) * 1_000, hour_marks=lambda: HOUR_MARK in body)
    if asked is not None:
        made.most_chars = sizes.most_chars(asked)
    call = _Call(client, body, line, made, reader(client.declared, made), target or Target(), heard=heard)
    if cancel.reason is not None:
        raise CallCut(cancel.reason)
    with in_call(line):
        try:
            response = _run(call)
        except (anthropic.AnthropicError, httpx2.HTTPError, CallFailed) as error:
            if cancel.reason is not None:
                context = call.context()
                raise CallCut(cancel.reason, partial=context.partial, request_id=context.request_id) from None
            # Without its cause: that one's text holds the provider's words as they came, and some echo the key.
            raise _failed(error, call) from None
        finally:
            if call.response is not None:
                call.response.close()
    return _reply(response, made, (time.monotonic() - began) * 1_000)


def _run(call: _Call) -> httpx2.Response:
    """Reads the answer to its end. Afterwards the reply is whole, or an error was raised."""
    response = call.response = post(call.client, call.body, call.target)
    call.made.known_as = translate.request_id(response.headers)
    if response.extensions[ENCODING] not in (b"", b"identity"):
        raise call.context().failed("provider_encoded", "the provider's answer is compressed, which was not asked for")
    if not response.is_success:  # of Anthropic's wire the SDK has raised it
        raise translate.of_answer(response.status_code, _told(response, call), response.headers, call.context())
    if call.heard is not None:
        call.heard(translate.kept_headers(response.headers))
    try:
        if response.headers.get("content-type", "").lower().startswith(("text/event-stream", aws.EVENTS)):
            _read_stream(response, call)
        else:
            _read_whole(response, call)
    except (events.NotAnEvent, BadStream) as error:
        raise call.context().failed("provider_bad_stream", f"the provider's stream cannot be read: {error}") from error
    except UnexpectedBlock as error:
        message = f"the model's answer holds a block of kind {error}, which was not asked for and cannot be sent back"
        raise call.context().failed("unexpected_block", message) from error
    except (events.TooLong, TooLarge) as error:
        raise call.context().failed(
            "reply_too_large", f"the model's answer is larger than any honest one: {error}"
        ) from error
    return response


def _read_stream(response: httpx2.Response, call: _Call) -> None:
    line, made = call.line, call.made
    line.renew()
    chunks = response.iter_raw()
    framed = response.headers["content-type"].lower().startswith(aws.EVENTS)
    told_of = aws.frames(chunks) if framed else events.read(chunks, parser(call.client.declared), line.renew)
    for event in told_of:
        told = translate.error_within(event)
        if told is not None:
            raise translate.of_answer(200, told, response.headers, call.context())
        call.reader.feed(event)
        if made.whole:
            break
        line.renew()
    else:
        call.reader.ended()
        if not made.whole:
            raise _broken_off(call)
    _read_rest(chunks, line)


def _read_rest(chunks: Iterator[bytes], line: Line) -> None:
    """The end of the body, so that the connection can be used again. The reply stands whatever comes of it."""
    line.ends_at = min(line.ends_at, time.monotonic() + REST_S)
    line.room = min(line.room, REST_BYTES)
    with contextlib.suppress(httpx2.HTTPError):
        for _ in chunks:
            pass


def _broken_off(call: _Call) -> CallFailed:
    if call.made.events == 0:
        return call.context().failed("provider_empty", "the provider answered 200 and sent nothing")
    return call.context().failed("provider_cut", "the provider's answer ended before its last event", cut=True)


def _read_whole(response: httpx2.Response, call: _Call) -> None:
    """A 200 that is no stream of events: the whole answer at once, or a page, a proxy's sign-in, an error, nothing."""
    body = b"".join(response.iter_raw())
    if not body.strip():
        raise call.context().failed("provider_empty", "the provider answered 200 and sent nothing")
    told = _parsed(body)
    within = translate.error_within(told)
    if within is not None:
        raise translate.of_answer(200, within, response.headers, call.context())
    try:
        if not told:
            raise BadStream("no object")
        call.reader.whole(told)
    except BadStream as error:
        if call.made.began:
            raise
        message = "the provider answered 200 with something that is no answer: check NIGHTSHIFT_PROVIDER_BASE_URL"
        said = body[:2_000].decode("utf-8", "replace")
        raise call.context().failed("provider_not_a_stream", message, said=said) from error


def _told(response: httpx2.Response, call: _Call) -> object:
    """The body of an answer that is no success, as JSON or as its text."""
    call.line.room = min(call.line.room, ERROR_BYTES)
    body = b"".join(response.iter_raw())
    return _parsed(body) or body[:2_000].decode("utf-8", "replace")


def _parsed(body: bytes) -> dict[str, Any]:
    try:
        return events.parse_object(body)
    except events.NotAnEvent:
        return {}


def _failed(error: Exception, call: _Call) -> CallFailed:
    context = call.context()
    if isinstance(error, CallFailed):
        return error
    if isinstance(error, anthropic.APIStatusError):
        return translate.of_status(error, context)
    status = call.line.answered
    if status is not None and status != 200:  # its body broke off or never ended; the status says enough
        return translate.of_answer(status, None, httpx2.Headers(call.line.headers), context)
    return translate.of_connection(error, context)


def _reply(response: httpx2.Response, made: Assembly, total_ms: float) -> Reply:
    usage, note = made.usage()
    model, message_id = made.message.get("model"), made.message.get("id")
    return Reply(
        blocks=made.content(),
        stop_reason=made.stop_reason,
        usage=usage,
        request_id=translate.request_id(response.headers),
        first_token_ms=made.first_token_ms,
        total_ms=total_ms,
        model=model if isinstance(model, str) else None,
        message_id=message_id if isinstance(message_id, str) else None,
        refusal=made.refusal,
        notes=(*made.notes, *((note,) if note else ())),
        limits=translate.kept_headers(response.headers),
    )

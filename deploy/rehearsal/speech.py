"""Owns what the wires do differently with a reply and an error, as values: one for each wire."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import orjson

from deploy.rehearsal import chat_events, converse, converse_events, events, foreign, responses_events
from deploy.rehearsal.admit import Admitted, admit
from deploy.rehearsal.converse import CONVERSE
from deploy.rehearsal.errors import Refused, error_body
from deploy.rehearsal.foreign import CHAT, RESPONSES
from deploy.rehearsal.http import Header, HttpRequest
from deploy.rehearsal.loose import Json


@dataclass(frozen=True, slots=True)
class Speech:
    """`lay_out` reads a request into the form that policies know; `error` is a body, `error_event` one inside a stream;
    `flood` is an event that carries so many words more; `id_header` names the request. `status_of` is what this wire
    says for a status, `error_headers` what stands beside the error, `garbage` an event that cannot be read."""

    lay_out: Callable[[Any], Any]
    admit: Callable[[HttpRequest, Any, str, dict[str, int]], Admitted]
    whole: Callable[[events.Message, bool], bytes]
    pieces: Callable[[events.Message, bool], list[bytes]]
    error: Callable[[str, str, str, str | None], Json]
    error_event: Callable[[str, str, str], bytes]
    flood: Callable[[str, str], bytes]
    id_header: str = "request-id"
    caches_by_itself: bool = False
    tells_limits: bool = True
    stream_type: str = "text/event-stream; charset=utf-8"
    status_of: Callable[[int], int] = lambda status: status
    error_headers: Callable[[str], list[Header]] = lambda _: []
    garbage: bytes = b"event: content_block_delta\ndata: {not json\n\n"


def _openai_error(kind: str, message: str, request_id: str, code: str | None = None) -> Json:  # noqa: ARG001 - in a header
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def _native_error(kind: str, message: str, request_id: str, code: str | None = None) -> Json:  # noqa: ARG001 - has none
    return dict(error_body(kind, message, request_id))


def _native_event(kind: str, message: str, request_id: str) -> bytes:
    return events.event("error", error_body(kind, message, request_id))


def _chat_event(kind: str, message: str, request_id: str) -> bytes:
    return b"data: " + orjson.dumps(_openai_error(kind, message, request_id)) + b"\n\n"


def _responses_event(kind: str, message: str, request_id: str) -> bytes:  # noqa: ARG001 - in a header
    return events.event(
        "error", {"type": "error", "code": kind, "message": message, "param": None, "sequence_number": 9}
    )


def _native_flood(of: str, words: str) -> bytes:
    if of == "pings":
        return events.event("ping", {"type": "ping", "words": words})
    delta = (
        {"type": "text_delta", "text": words} if of == "text" else {"type": "input_json_delta", "partial_json": words}
    )
    return events.event("content_block_delta", {"type": "content_block_delta", "index": 0, "delta": delta})


def _of(wire: str) -> Callable[[HttpRequest, Any, str, dict[str, int]], Admitted]:
    del wire

    def admit_foreign(_: HttpRequest, request: Any, key: str, windows: dict[str, int]) -> Admitted:
        return foreign.admit(request, key, windows)

    return admit_foreign


NATIVE: Final = Speech(
    lambda parsed: parsed, admit, events.whole, events.pieces, _native_error, _native_event, _native_flood,
)  # fmt: skip
BY_WIRE: Final = {
    CHAT: Speech(
        lambda parsed: foreign.laid_out(CHAT, parsed), _of(CHAT), chat_events.whole, chat_events.pieces, _openai_error,
        _chat_event, chat_events.flood, "x-request-id", caches_by_itself=True,
    ),
    RESPONSES: Speech(
        lambda parsed: foreign.laid_out(RESPONSES, parsed), _of(RESPONSES), responses_events.whole,
        responses_events.pieces, _openai_error, _responses_event, responses_events.flood, "x-request-id",
        caches_by_itself=True,
    ),
    CONVERSE: Speech(
        converse.laid_out, lambda _, request, key, windows: converse.admit(request, key, windows),
        converse_events.whole, converse_events.pieces, converse_events.error, converse_events.error_event,
        converse_events.flood, "x-amzn-requestid", stream_type=converse_events.STREAM_TYPE,
        status_of=converse_events.status_of, tells_limits=False, error_headers=converse_events.error_headers,
        garbage=converse_events.GARBAGE,
    ),
}  # fmt: skip


def refused(speech: Speech, refusal: Refused, request_id: str) -> Json:
    return speech.error(refusal.kind, refusal.message, request_id, refusal.code)

"""Owns the wire form of a reply in Bedrock's Converse: the whole answer, the binary frames of a stream, its errors."""

import zlib
from typing import Any, Final

import orjson

from deploy.rehearsal.events import Message, Part
from deploy.rehearsal.http import Header
from deploy.rehearsal.loose import Json

STREAM_TYPE: Final = "application/vnd.amazon.eventstream"
KINDS: Final = {
    "invalid_request_error": "ValidationException",
    "authentication_error": "UnrecognizedClientException",
    "billing_error": "AccessDeniedException",
    "permission_error": "AccessDeniedException",
    "not_found_error": "ResourceNotFoundException",
    "request_too_large": "ValidationException",
    "rate_limit_error": "ThrottlingException",
    "api_error": "InternalServerException",
    "timeout_error": "ModelTimeoutException",
    "overloaded_error": "ServiceUnavailableException",
}
STATUSES: Final = {401: 403, 529: 503}
STOPS: Final = {"refusal": "content_filtered"}


def frame(kind: str, payload: bytes, what: str = "event") -> bytes:
    """One message of `application/vnd.amazon.eventstream`: lengths, their checksum, headers, payload, checksum."""
    named = {f":{what}-type": kind, ":content-type": "application/json", ":message-type": what}
    headers = b"".join(
        b"%c%b\x07%b%b" % (len(name), name.encode(), len(value).to_bytes(2, "big"), value.encode())
        for name, value in named.items()
    )
    prelude = (len(headers) + len(payload) + 16).to_bytes(4, "big") + len(headers).to_bytes(4, "big")
    head = prelude + zlib.crc32(prelude).to_bytes(4, "big") + headers + payload
    return head + zlib.crc32(head).to_bytes(4, "big")


GARBAGE: Final = frame("contentBlockDelta", b"{not json")


def usage(message: Message) -> Json:
    """Disjoint, writes by their time to live beside them."""
    bill = message.bill
    written = {"5m": bill.write_5m, "1h": bill.write_1h}
    return {
        "inputTokens": bill.input,
        "outputTokens": message.output,
        "totalTokens": bill.prompt + message.output,
        "cacheReadInputTokens": bill.read,
        "cacheWriteInputTokens": bill.write_5m + bill.write_1h,
        "cacheDetails": [{"ttl": ttl, "inputTokens": tokens} for ttl, tokens in written.items() if tokens],
    }


def whole(message: Message, with_usage: bool) -> bytes:
    answer = b"".join((
        b'{"output":{"message":{"role":"assistant","content":[', b",".join(map(_block, message.parts)),
        b']}},"stopReason":', orjson.dumps(_stop(message)), b',"metrics":{"latencyMs":1}',
    ))  # fmt: skip
    return answer + (b',"usage":' + orjson.dumps(usage(message)) if with_usage else b"") + b"}"


def pieces(message: Message, with_usage: bool) -> list[bytes]:
    """The first is the head alone, the last the end; between them a frame for each delta."""
    ready = [_event("messageStart", role="assistant")]
    pending = b""
    for at, part in enumerate(message.parts):
        if part.whole["type"] == "tool_use":  # nothing else has a start here
            tool = {"toolUseId": part.whole["id"], "name": part.whole["name"]}
            pending += _event("contentBlockStart", contentBlockIndex=at, start={"toolUse": tool})
        for delta in _deltas(part):
            ready.append(pending + _event("contentBlockDelta", contentBlockIndex=at, delta=delta))
            pending = b""
        pending += _event("contentBlockStop", contentBlockIndex=at)
    last = pending + _event("messageStop", stopReason=_stop(message))
    if with_usage:
        last += _event("metadata", usage=usage(message), metrics={"latencyMs": 1})
    return [*ready, last]


def error(kind: str, message: str, request_id: str, code: str | None = None) -> Json:  # noqa: ARG001 - stand in headers
    return {"message": message}


def error_headers(kind: str) -> list[Header]:
    return [("x-amzn-errortype", f"{KINDS.get(kind, kind)}:http://internal.amazon.com/coral/com.amazon.bedrock/")]


def error_event(kind: str, message: str, request_id: str) -> bytes:  # noqa: ARG001 - stands in a header
    told = KINDS.get(kind, kind)
    return frame(told[:1].lower() + told[1:], orjson.dumps({"message": message}), "exception")


def status_of(status: int) -> int:
    return STATUSES.get(status, status)


def flood(of: str, words: str) -> bytes:
    if of == "pings":
        return _event("somethingNew", words=words)
    delta: Json = {"text": words} if of == "text" else {"toolUse": {"input": words}}
    return _event("contentBlockDelta", contentBlockIndex=0, delta=delta)


def _event(kind: str, **payload: Any) -> bytes:
    return frame(kind, orjson.dumps({**payload, "p": "abcdefgh"}))  # padded, as the service does it


def _block(part: Part) -> bytes:
    block = part.whole
    match block["type"]:
        case "text":
            return orjson.dumps({"text": block["text"]})
        case "tool_use":  # the input may be a fragment, which keeps how its numbers were written
            told = {"toolUseId": block["id"], "name": block["name"], "input": block["input"]}
            return orjson.dumps({"toolUse": told})
        case "thinking":
            told = {"text": block["thinking"], "signature": block["signature"]}
            return orjson.dumps({"reasoningContent": {"reasoningText": told}})
        case _:
            return orjson.dumps({"reasoningContent": {"redactedContent": block["data"]}})


def _deltas(part: Part) -> list[Json]:
    match part.whole["type"]:
        case "text":
            return [{"text": delta["text"]} for delta in part.deltas]
        case "tool_use":
            return [{"toolUse": {"input": delta["partial_json"]}} for delta in part.deltas if delta["partial_json"]]
        case "thinking":
            names = {"thinking_delta": ("text", "thinking"), "signature_delta": ("signature", "signature")}
            told = [(names[delta["type"]], delta) for delta in part.deltas]
            return [{"reasoningContent": {name: delta[key]}} for (name, key), delta in told]
        case _:
            return [{"reasoningContent": {"redactedContent": part.whole["data"]}}]


def _stop(message: Message) -> str:
    return STOPS.get(message.stop_reason, message.stop_reason)

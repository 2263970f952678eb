"""Owns the wire form of a reply: the message of a plain answer, and the timed pieces of a stream."""

from dataclasses import dataclass
from math import ceil
from typing import Any, Final

import orjson

from deploy.rehearsal import signing, tokens
from deploy.rehearsal.cache import Bill
from deploy.rehearsal.loose import Json
from deploy.rehearsal.models import Model
from deploy.rehearsal.reply import Reply

DEFAULT_CHUNK: Final = 200
PING: Final = b'event: ping\ndata: {"type":"ping"}\n\n'


@dataclass(frozen=True, slots=True)
class Part:
    """One content block: as a whole, as it starts, and its deltas. `weight` is its output tokens."""

    whole: Json
    start: Json
    deltas: tuple[Json, ...]
    weight: int


@dataclass(frozen=True, slots=True)
class Message:
    id: str
    model: str
    parts: tuple[Part, ...]
    stop_reason: str
    output: int
    bill: Bill


def compose(
    reply: Reply, model: Model, bill: Bill, number: str, chain: bytes, limit: int, show_thinking: bool
) -> Message:
    """The message for a reply, cut at `limit` output tokens as a model would be."""
    parts: list[Part] = []
    if reply.thinking is not None:
        parts.append(_thinking(reply.thinking, chain, model, show_thinking))
    if reply.redacted:
        data = signing.redact(chain)
        block = {"type": "redacted_thinking", "data": data}
        parts.append(Part(block, block, (), 20))
    left = limit - sum(part.weight for part in parts)
    said, cut = _text(reply, model, left)
    tools = [
        _tool(wish.name, wish.input, wish.input_text, f"toolu_{number}{at:02d}", model)
        for at, wish in enumerate(reply.tools)
    ]
    if cut:
        tools = []
    parts += [*tools, *said] if reply.tools_first else [*said, *tools]
    kept, total = _fit(parts, limit)
    cut = cut or len(kept) < len(parts)
    stop = "max_tokens" if cut else reply.stop_reason or ("tool_use" if tools else "end_turn")
    output = reply.output_tokens if reply.output_tokens is not None else max(1, total)
    return Message(f"msg_{number}", model.name, tuple(kept), stop, output, bill)


def _fit(parts: list[Part], limit: int) -> tuple[list[Part], int]:
    kept: list[Part] = []
    total = 0
    for part in parts:
        if total + part.weight > limit:
            return kept, limit
        total += part.weight
        kept.append(part)
    return kept, total


def _weigh(text: str, model: Model) -> int:
    return tokens.scaled(tokens.raw_count(text), model.token_factor)


def _thinking(text: str, chain: bytes, model: Model, show: bool) -> Part:
    shown = text if show else ""
    signature = signing.sign(shown, chain)
    deltas: list[Json] = (
        [{"type": "thinking_delta", "thinking": piece} for piece in _split(shown, None)] if shown else []
    )
    return Part(
        {"type": "thinking", "thinking": shown, "signature": signature},
        {"type": "thinking", "thinking": "", "signature": ""},
        (*deltas, {"type": "signature_delta", "signature": signature}),
        _weigh(text, model),
    )


def _text(reply: Reply, model: Model, limit: int) -> tuple[list[Part], bool]:
    if not reply.text:
        return [], False
    text, weight, cut = reply.text, _weigh(reply.text, model), False
    if weight > limit:
        text, weight, cut = text[: max(0, len(text) * limit // weight)], max(0, limit), True
        if not text:
            return [], True
    deltas: list[Json] = [{"type": "text_delta", "text": piece} for piece in _split(text, reply.chunks)]
    return [Part({"type": "text", "text": text}, {"type": "text", "text": ""}, tuple(deltas), weight)], cut


def _tool(name: str, given: Json, text: str | None, call_id: str, model: Model) -> Part:
    dumped = orjson.dumps(given).decode() if text is None else text
    middle = len(dumped) // 2
    head = {"type": "tool_use", "id": call_id, "name": name}
    pieces = ("", dumped[:middle], dumped[middle:])
    deltas: list[Json] = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    whole_input: Any = given if text is None else orjson.Fragment(text)
    return Part({**head, "input": whole_input}, {**head, "input": {}}, tuple(deltas), _weigh(name + dumped, model) + 10)


def _split(text: str, chunks: int | None) -> list[str]:
    size = ceil(len(text) / chunks) if chunks else DEFAULT_CHUNK
    return [text[at : at + size] for at in range(0, len(text), max(1, size))]


def usage(bill: Bill, output: int) -> Json:
    return {
        "input_tokens": bill.input,
        "cache_creation_input_tokens": bill.write_5m + bill.write_1h,
        "cache_read_input_tokens": bill.read,
        "cache_creation": {"ephemeral_5m_input_tokens": bill.write_5m, "ephemeral_1h_input_tokens": bill.write_1h},
        "output_tokens": output,
        "service_tier": "standard",
        "inference_geo": "global",
    }


def whole(message: Message, with_usage: bool) -> bytes:
    """The body of a plain answer."""
    return orjson.dumps(
        _envelope(message, [part.whole for part in message.parts], message.stop_reason, with_usage, message.output)
    )


def _envelope(message: Message, content: list[Json], stop_reason: str | None, with_usage: bool, output: int) -> Json:
    head: Json = {
        "id": message.id,
        "type": "message",
        "role": "assistant",
        "model": message.model,
        "content": content,
        "stop_reason": stop_reason,
        "stop_sequence": None,
    }
    return {**head, "usage": usage(message.bill, output)} if with_usage else head


def event(name: str, data: Json) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (name.encode(), orjson.dumps(data))


def pieces(message: Message, with_usage: bool) -> list[bytes]:
    """The stream in pieces: the beginning, each delta with what must precede it, and the end."""
    opening = {"type": "message_start", "message": _envelope(message, [], None, with_usage, 1)}
    ready = [event("message_start", opening) + PING]
    pending = b""
    for index, part in enumerate(message.parts):
        pending += event(
            "content_block_start", {"type": "content_block_start", "index": index, "content_block": part.start}
        )
        for delta in part.deltas:
            ready.append(
                pending + event("content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta})
            )
            pending = b""
        pending += event("content_block_stop", {"type": "content_block_stop", "index": index})
    closing: Json = {"type": "message_delta", "delta": {"stop_reason": message.stop_reason, "stop_sequence": None}}
    if with_usage:
        closing["usage"] = {
            key: value for key, value in usage(message.bill, message.output).items() if key not in _NOT_IN_DELTA
        }
    ready.append(pending + event("message_delta", closing) + event("message_stop", {"type": "message_stop"}))
    return ready


_NOT_IN_DELTA: Final = frozenset(("service_tier", "inference_geo", "cache_creation"))

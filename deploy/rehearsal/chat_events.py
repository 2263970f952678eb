"""Owns the wire form of a reply in chat completions: the whole answer, and the chunks of a stream."""

from typing import Any, Final

import orjson

from deploy.rehearsal.events import Message, Part
from deploy.rehearsal.foreign import signature_of
from deploy.rehearsal.foreign_models import manners_of
from deploy.rehearsal.loose import Json

FINISH: Final = {"end_turn": "stop", "tool_use": "tool_calls", "max_tokens": "length", "refusal": "content_filter"}
CREATED: Final = 1_790_000_000


def usage(message: Message) -> Json:
    """Inclusive: what was read and written is part of the prompt."""
    bill = message.bill
    return {
        "prompt_tokens": bill.prompt,
        "completion_tokens": message.output,
        "total_tokens": bill.prompt + message.output,
        "prompt_tokens_details": {"cached_tokens": bill.read, "cache_write_tokens": bill.write_5m + bill.write_1h},
        "completion_tokens_details": {"reasoning_tokens": _thought_tokens(message)},
    }


def whole(message: Message, with_usage: bool) -> bytes:
    said: Json = {"role": "assistant", "content": None, "refusal": None}
    calls: list[Json] = []
    for part in message.parts:
        match part.whole["type"]:
            case "text":
                said["content"] = (said["content"] or "") + part.whole["text"]
            case "tool_use":
                calls.append(_call(message, part, len(calls)))
            case "thinking":
                said["reasoning_content"] = part.whole["thinking"]
            case _:
                pass
    said |= {"tool_calls": calls} if calls else {}
    choice = {"index": 0, "message": said, "finish_reason": _finish(message), "logprobs": None}
    return orjson.dumps(
        _envelope(message, "chat.completion", [choice]) | ({"usage": usage(message)} if with_usage else {})
    )


def pieces(message: Message, with_usage: bool) -> list[bytes]:
    """The first is the head alone, the last the end; between them one chunk a delta."""
    ready = [_chunk(message, {"role": "assistant", "content": "", "refusal": None})]
    calls = 0
    for part in message.parts:
        match part.whole["type"]:
            case "text":
                ready += [_chunk(message, {"content": delta["text"]}) for delta in part.deltas]
            case "thinking":
                ready += [
                    _chunk(message, {"reasoning_content": delta["thinking"]})
                    for delta in part.deltas
                    if delta["type"] == "thinking_delta"
                ]
            case "tool_use":
                ready += _call_pieces(message, part, calls)
                calls += 1
            case _:
                pass
    last = _data(_envelope(message, "chat.completion.chunk", [_choice({}, _finish(message))]))
    if with_usage:
        last += _data(_envelope(message, "chat.completion.chunk", []) | {"usage": usage(message)})
    return [*ready, last + b"data: [DONE]\n\n"]


def flood(of: str, words: str) -> bytes:
    delta: Json = {"content": words}
    if of == "pings":
        return b": " + words.encode() + b"\n\n"
    if of == "arguments":
        delta = {"tool_calls": [{"index": 0, "function": {"arguments": words}}]}
    return _data({"id": "flood", "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})


def _call_pieces(message: Message, part: Part, number: int) -> list[bytes]:
    whole_call = _call(message, part, number)
    head = {"index": number, "id": whole_call["id"], "type": "function"}
    name = {"name": whole_call["function"]["name"], "arguments": ""}
    found = [_chunk(message, {"tool_calls": [{**head, "function": name}]})]
    for delta in part.deltas:
        if delta["partial_json"]:
            more = {"index": number, "function": {"arguments": delta["partial_json"]}}
            found.append(_chunk(message, {"tool_calls": [more]}))
    if "extra_content" in whole_call:  # as that provider does it: at the end, without an index
        trailing = {"id": whole_call["id"], "extra_content": whole_call["extra_content"]}
        found.append(_chunk(message, {"tool_calls": [trailing]}))
    return found


def _call(message: Message, part: Part, number: int) -> Json:
    manners = manners_of(message.model)
    told: str = part.whole["id"]
    call_id = told[-9:] if manners.nine_ids else told
    arguments = "".join(delta["partial_json"] for delta in part.deltas)
    call: Json = {
        "id": call_id,
        "type": "function",
        "function": {"name": part.whole["name"], "arguments": arguments},
    }
    if manners.signs_calls and number == 0:
        call["extra_content"] = {"google": {"thought_signature": signature_of(call_id)}}
    return call


def _finish(message: Message) -> str:
    return FINISH.get(message.stop_reason, message.stop_reason)


def _chunk(message: Message, delta: Json) -> bytes:
    return _data(_envelope(message, "chat.completion.chunk", [_choice(delta, None)]))


def _choice(delta: Json, finish: str | None) -> Json:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}


def _envelope(message: Message, kind: str, choices: list[Any]) -> Json:
    return {
        "id": message.id.replace("msg_", "chatcmpl-"), "object": kind, "created": CREATED, "model": message.model,
        "choices": choices,
    }  # fmt: skip


def _data(value: Json) -> bytes:
    return b"data: " + orjson.dumps(value) + b"\n\n"


def _thought_tokens(message: Message) -> int:
    return min(message.output, sum(part.weight for part in message.parts if part.whole["type"] == "thinking"))

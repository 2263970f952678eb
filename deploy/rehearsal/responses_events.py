"""Owns the wire form of a reply in the Responses API: the whole response, and the events of a stream."""

from typing import Any, Final

import orjson

from deploy.rehearsal import signing
from deploy.rehearsal.events import Message, Part, event
from deploy.rehearsal.loose import Json

CREATED: Final = 1_790_000_000
INCOMPLETE: Final = {"max_tokens": "max_output_tokens", "refusal": "content_filter"}


def usage(message: Message) -> Json:
    bill = message.bill
    written = bill.write_5m + bill.write_1h
    thought = sum(part.weight for part in message.parts if part.whole["type"] == "thinking")
    return {
        "input_tokens": bill.prompt,
        "input_tokens_details": {
            "cached_tokens": bill.read,
            "cache_write_tokens": written,
            "cache_write_tokens_details": {"ttl_30m_tokens": written, "ttl_12h_tokens": 0},
        },
        "output_tokens": message.output,
        "output_tokens_details": {"reasoning_tokens": min(message.output, thought)},
        "total_tokens": bill.prompt + message.output,
    }


def whole(message: Message, with_usage: bool) -> bytes:
    return orjson.dumps(_response(message, _status(message), _items(message), with_usage))


def pieces(message: Message, with_usage: bool) -> list[bytes]:
    """The first is the head alone, the last the end; between them the events of each item."""
    numbers = iter(range(1_000_000))

    def told(kind: str, **data: Any) -> bytes:
        return event(kind, {"type": kind, "sequence_number": next(numbers), **data})

    started = _response(message, "in_progress", [], False)
    ready = [told("response.created", response=started) + told("response.in_progress", response=started)]
    for at, (part, item) in enumerate(zip(_shown(message), _items(message), strict=True)):
        opening = told("response.output_item.added", output_index=at, item=_begun(item))
        ready += _of_item(told, at, part, item, opening)
    kind = "response.completed" if _status(message) == "completed" else "response.incomplete"
    return [*ready, told(kind, response=_response(message, _status(message), _items(message), with_usage))]


def flood(of: str, words: str) -> bytes:
    if of == "pings":
        return event("response.in_progress", {"type": "response.in_progress", "sequence_number": 1, "words": words})
    kind = "response.output_text.delta" if of == "text" else "response.function_call_arguments.delta"
    data = {"type": kind, "sequence_number": 1, "output_index": 0, "content_index": 0, "item_id": "x", "delta": words}
    return event(kind, {**data, "logprobs": []})


def _of_item(told: Any, at: int, part: Part, item: Json, opening: bytes) -> list[bytes]:
    where = {"item_id": item["id"], "output_index": at}
    found = [opening]
    match item["type"]:
        case "message":
            inner: Json = {**where, "content_index": 0, "logprobs": []}
            place = {**where, "content_index": 0}
            found[0] += told("response.content_part.added", **place, part={**item["content"][0], "text": ""})
            found += [told("response.output_text.delta", **inner, delta=one["text"]) for one in part.deltas]
            found.append(told("response.output_text.done", **inner, text=part.whole["text"]))
            found.append(told("response.content_part.done", **place, part=item["content"][0]))
        case "function_call":
            given = [one["partial_json"] for one in part.deltas if one["partial_json"]]
            found += [told("response.function_call_arguments.delta", **where, delta=one) for one in given]
            end = {"name": item["name"], "arguments": item["arguments"]}
            found.append(told("response.function_call_arguments.done", **where, **end))
        case _:
            inner = {**where, "summary_index": 0}
            thought = [one["thinking"] for one in part.deltas if one["type"] == "thinking_delta"]
            if item["summary"]:
                empty = {"type": "summary_text", "text": ""}
                found[0] += told("response.reasoning_summary_part.added", **inner, part=empty)
            found += [told("response.reasoning_summary_text.delta", **inner, delta=one) for one in thought]
            if item["summary"]:
                found.append(told("response.reasoning_summary_text.done", **inner, text=item["summary"][0]["text"]))
                found.append(told("response.reasoning_summary_part.done", **inner, part=item["summary"][0]))
    found.append(told("response.output_item.done", output_index=at, item=item))
    return found


def _shown(message: Message) -> list[Part]:
    return [part for part in message.parts if part.whole["type"] != "redacted_thinking"]


def _items(message: Message) -> list[Json]:
    number = message.id.removeprefix("msg_")
    return [_item(part, f"{number}{at:02d}") for at, part in enumerate(_shown(message))]


def _item(part: Part, number: str) -> Json:
    match part.whole["type"]:
        case "text":
            content: Json = {"type": "output_text", "text": part.whole["text"], "annotations": [], "logprobs": []}
            return {
                "id": f"msg_{number}", "type": "message", "status": "completed", "role": "assistant",
                "content": [content],
            }  # fmt: skip
        case "tool_use":
            return {
                "id": f"fc_{number}", "type": "function_call", "status": "completed", "call_id": part.whole["id"],
                "name": part.whole["name"], "arguments": "".join(delta["partial_json"] for delta in part.deltas),
            }  # fmt: skip
        case _:
            said = part.whole["thinking"]
            return {
                "id": f"rs_{number}", "type": "reasoning",
                "summary": [{"type": "summary_text", "text": said}] if said else [],
                "encrypted_content": signing.sign(f"rs_{number}", b"item"),
            }  # fmt: skip


def _begun(item: Json) -> Json:
    empty: dict[str, Json] = {
        "message": {"content": []},
        "function_call": {"arguments": ""},
        "reasoning": {"summary": []},
    }
    return {**item, **empty[item["type"]], **({} if item["type"] == "reasoning" else {"status": "in_progress"})}


def _status(message: Message) -> str:
    return "incomplete" if message.stop_reason in INCOMPLETE else "completed"


def _response(message: Message, status: str, items: list[Json], with_usage: bool) -> Json:
    why = INCOMPLETE.get(message.stop_reason) if status == "incomplete" else None
    return {
        "id": message.id.replace("msg_", "resp_"), "object": "response", "created_at": CREATED, "status": status,
        "error": None, "incomplete_details": {"reason": why} if why else None, "instructions": None, "metadata": {},
        "model": message.model, "output": items, "parallel_tool_calls": True, "temperature": None, "top_p": None,
        "tool_choice": "auto", "tools": [], "usage": usage(message) if with_usage else None,
    }  # fmt: skip

"""How a provider of each wire writes an answer, an error and an error within an answer, as bytes; broken on demand.

Written by hand after the providers' pages: it shares no code with the readers, nor with the rehearsal provider.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]
SO_FAR = "so far"


@dataclass(frozen=True, slots=True)
class Tool:
    """One call as a model makes it: `pieces` are its arguments as they come."""

    id: Any = "call_1"
    name: Any = "look"
    pieces: tuple[str, ...] = ('{"x":', "1}")


@dataclass(frozen=True, slots=True)
class Said:
    """One answer. `usage` in the wire's own shape, None for none at all; `more` are members nobody knows."""

    text: str = SO_FAR
    tools: tuple[Tool, ...] = ()
    reason: str | None = None
    usage: Json | str | None = "usual"
    model: Any = "m-1"
    more: bool = False
    refusal: str | None = None


def data(value: Any, event: str = "") -> bytes:
    named = f"event: {event}\n" if event else ""
    return f"{named}data: {json.dumps(value, separators=(',', ':'))}\n\n".encode()


def _named(value: Json) -> bytes:
    return data(value, value["type"])


class Speech:
    """What is the same in all wires is named here; each answers with its own bytes."""

    wire = ""

    def stream(self, said: Said) -> list[bytes]:
        """The events of an answer, the one by which it ends last."""
        raise NotImplementedError

    def whole(self, said: Said) -> Json:
        raise NotImplementedError

    def usage(self, prompt: Any, output: Any) -> Json:
        raise NotImplementedError

    def error(self, kind: str, message: str, code: str | None = None) -> Json:
        return {"error": {"message": message, "type": kind, "param": None, "code": code}}

    def error_event(self, kind: str, message: str) -> bytes:
        return data(self.error(kind, message, kind))


class Native(Speech):
    wire = "anthropic"

    def usage(self, prompt: Any, output: Any) -> Json:
        return {"input_tokens": prompt, "output_tokens": output}

    def _head(self, said: Said) -> Json:
        return {
            "id": "msg_1", "type": "message", "role": "assistant", "model": said.model, "content": [],
            "stop_reason": None, "stop_sequence": None, **({"strange": {"a": [1]}} if said.more else {}),
        }  # fmt: skip

    def _usage(self, said: Said) -> Json | None:
        return self.usage(20, 7) if isinstance(said.usage, str) else said.usage

    def stream(self, said: Said) -> list[bytes]:
        told = self._usage(said)
        first = {} if told is None else {"usage": {**told, "output_tokens": 1}}
        events = [data({"type": "message_start", "message": {**self._head(said), **first}}, "message_start")]
        blocks: list[tuple[Json, list[Json]]] = []
        if said.text:
            blocks.append(({"type": "text", "text": ""}, [{"type": "text_delta", "text": said.text}]))
        for tool in said.tools:
            head: Json = {"type": "tool_use", "id": tool.id, "name": tool.name, "input": {}}
            blocks.append((head, [{"type": "input_json_delta", "partial_json": one} for one in tool.pieces]))
        for at, (head, deltas) in enumerate(blocks):
            events.append(_named({"type": "content_block_start", "index": at, "content_block": head}))
            events += [_named({"type": "content_block_delta", "index": at, "delta": one}) for one in deltas]
            events.append(_named({"type": "content_block_stop", "index": at}))
        last = {} if told is None else {"usage": told}
        stop = {"stop_reason": self._reason(said), "stop_sequence": None}
        events.append(data({"type": "message_delta", "delta": stop, **last}, "message_delta"))
        return [*events, data({"type": "message_stop"}, "message_stop")]

    def whole(self, said: Said) -> Json:
        content: list[Json] = [{"type": "text", "text": said.text}] if said.text else []
        content += [{"type": "tool_use", "id": one.id, "name": one.name, "input": _parsed(one)} for one in said.tools]
        told = self._usage(said)
        usage = {} if told is None else {"usage": told}
        return {**self._head(said), "content": content, "stop_reason": self._reason(said), **usage}

    @staticmethod
    def _reason(said: Said) -> str:
        return "refusal" if said.refusal else said.reason or ("tool_use" if said.tools else "end_turn")

    def error(self, kind: str, message: str, code: str | None = None) -> Json:
        more = {} if code is None else {"details": {"error_code": code}}
        return {"type": "error", "error": {"type": kind, "message": message, **more}, "request_id": "req_1"}

    def error_event(self, kind: str, message: str) -> bytes:
        return data(self.error(kind, message), "error")


class Chat(Speech):
    wire = "chat_completions"

    def usage(self, prompt: Any, output: Any) -> Json:
        return {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": 27}

    def _usage(self, said: Said) -> Json | None:
        return self.usage(20, 7) if isinstance(said.usage, str) else said.usage

    def _chunk(self, said: Said, delta: Json, finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return data({**self._head(said), "object": "chat.completion.chunk", "choices": [choice]})

    def _head(self, said: Said) -> Json:
        more = {"strange": {"a": [1]}} if said.more else {}
        return {"id": "chatcmpl-1", "created": 1, "model": said.model, **more}

    def stream(self, said: Said) -> list[bytes]:
        events = [self._chunk(said, {"role": "assistant", "content": ""})]
        if said.text:
            events.append(self._chunk(said, {"content": said.text}))
        if said.refusal:
            events.append(self._chunk(said, {"refusal": said.refusal}))
        for at, tool in enumerate(said.tools):
            head = {"index": at, "id": tool.id, "type": "function", "function": {"name": tool.name, "arguments": ""}}
            events.append(self._chunk(said, {"tool_calls": [head]}))
            deltas = [{"tool_calls": [{"index": at, "function": {"arguments": one}}]} for one in tool.pieces]
            events += [self._chunk(said, one) for one in deltas]
        events.append(self._chunk(said, {}, self._reason(said)))
        told = self._usage(said)
        if told is not None:
            events.append(data({**self._head(said), "object": "chat.completion.chunk", "choices": [], "usage": told}))
        return [*events, b"data: [DONE]\n\n"]

    def whole(self, said: Said) -> Json:
        message: Json = {"role": "assistant", "content": said.text or None, "refusal": said.refusal}
        if said.tools:
            message["tool_calls"] = [
                {"id": one.id, "type": "function", "function": {"name": one.name, "arguments": "".join(one.pieces)}}
                for one in said.tools
            ]
        choice = {"index": 0, "message": message, "finish_reason": self._reason(said), "logprobs": None}
        told = self._usage(said)
        usage = {} if told is None else {"usage": told}
        return {**self._head(said), "object": "chat.completion", "choices": [choice], **usage}

    @staticmethod
    def _reason(said: Said) -> str:
        known = {"max_tokens": "length"}
        return known.get(said.reason or "", said.reason or ("tool_calls" if said.tools else "stop"))


class Responses(Speech):
    wire = "responses"

    def usage(self, prompt: Any, output: Any) -> Json:
        return {"input_tokens": prompt, "output_tokens": output, "total_tokens": 27}

    def _usage(self, said: Said) -> Json | None:
        return self.usage(20, 7) if isinstance(said.usage, str) else said.usage

    def _items(self, said: Said) -> list[Json]:
        content: list[Json] = []
        if said.text:
            content.append({"type": "output_text", "text": said.text, "annotations": []})
        if said.refusal:
            content.append({"type": "refusal", "refusal": said.refusal})
        items: list[Json] = [
            {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": content}
        ] if content else []  # fmt: skip
        for at, one in enumerate(said.tools):
            items.append({
                "id": f"fc_{at}", "type": "function_call", "status": "completed", "call_id": one.id, "name": one.name,
                "arguments": "".join(one.pieces),
            })  # fmt: skip
        return items

    def whole(self, said: Said) -> Json:
        reason = {"max_tokens": "max_output_tokens"}.get(said.reason or "", said.reason)
        told = self._usage(said)
        return {
            "id": "resp_1", "object": "response", "created_at": 1, "model": said.model, "output": self._items(said),
            "status": "incomplete" if reason else "completed", "error": None,
            "incomplete_details": {"reason": reason} if reason else None, "parallel_tool_calls": True, "tools": [],
            "tool_choice": "auto", **({} if told is None else {"usage": told}),
            **({"strange": {"a": [1]}} if said.more else {}),
        }  # fmt: skip

    def stream(self, said: Said) -> list[bytes]:
        last = self.whole(said)
        begun: Json = {**last, "output": [], "status": "in_progress", "usage": None}
        told: list[Json] = [{"type": "response.created", "response": begun}]
        for at, item in enumerate(last["output"]):
            started = {**item, "status": "in_progress"}
            if item["type"] == "message":
                told.append(
                    {"type": "response.output_item.added", "output_index": at, "item": {**started, "content": []}}
                )
                told += self._parts(at, item)
            else:
                told.append(
                    {"type": "response.output_item.added", "output_index": at, "item": {**started, "arguments": ""}}
                )
                told.append({
                    "type": "response.function_call_arguments.delta", "output_index": at, "item_id": item["id"],
                    "delta": item["arguments"],
                })  # fmt: skip
            told.append({"type": "response.output_item.done", "output_index": at, "item": item})
        end = "response.incomplete" if last["status"] == "incomplete" else "response.completed"
        told.append({"type": end, "response": last})
        return [data({**one, "sequence_number": nth}, one["type"]) for nth, one in enumerate(told)]

    @staticmethod
    def _parts(at: int, item: Json) -> list[Json]:
        told: list[Json] = []
        for nth, part in enumerate(item["content"]):
            where = {"output_index": at, "content_index": nth, "item_id": item["id"]}
            refusal = part["type"] == "refusal"
            empty = {**part, "refusal": ""} if refusal else {**part, "text": ""}
            kind = "response.refusal.delta" if refusal else "response.output_text.delta"
            said = part["refusal"] if refusal else part["text"]
            told += [
                {"type": "response.content_part.added", **where, "part": empty},
                {"type": kind, **where, "delta": said, "logprobs": []},
            ]
        return told

    def error_event(self, kind: str, message: str) -> bytes:
        return data({"type": "error", "code": kind, "message": message, "param": None, "sequence_number": 9}, "error")


def _parsed(tool: Tool) -> Any:
    try:
        return json.loads("".join(tool.pieces))
    except (ValueError, RecursionError):
        return "".join(tool.pieces)


SPEECHES: dict[str, Speech] = {one.wire: one for one in (Native(), Chat(), Responses())}

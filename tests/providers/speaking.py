"""How a provider of each wire writes an answer, an error and an error within an answer, as bytes; broken on demand.

Written by hand after the providers' pages: it shares no code with the readers, nor with the rehearsal provider.
"""

from __future__ import annotations

import json
import zlib
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

    text: Any = SO_FAR
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
    ping = b": ping\n\n"

    def event(self, payload: bytes) -> bytes:
        """One event that holds just these bytes."""
        return b"data: " + payload + b"\n\n"

    def error_headers(self, kind: str, code: str | None) -> tuple[str, ...]:  # noqa: ARG002 - one wire has some
        return ()

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


def frame(kind: str, payload: Any, what: str = "event", named: str | None = None) -> bytes:
    """A frame of `application/vnd.amazon.eventstream`, after the published layout: the lengths of all and of the
    headers, their CRC, headers (name, 7 for a text, value), payload, CRC of it all."""
    headers = {f":{named or what}-type": kind, ":content-type": "application/json", ":message-type": what}
    return framed(headers, payload if isinstance(payload, bytes) else json.dumps(payload).encode())


def framed(headers: dict[str, str], payload: bytes) -> bytes:
    told = b""
    for name, value in headers.items():
        told += bytes([len(name)]) + name.encode() + b"\x07" + len(value).to_bytes(2, "big") + value.encode()
    lengths = (16 + len(told) + len(payload)).to_bytes(4, "big") + len(told).to_bytes(4, "big")
    whole = lengths + zlib.crc32(lengths).to_bytes(4, "big") + told + payload
    return whole + zlib.crc32(whole).to_bytes(4, "big")


NAMES = {
    "invalid_request_error": "ValidationException", "overloaded_error": "ServiceUnavailableException",
    "rate_limit_error": "ThrottlingException", "server_error": "InternalServerException",
    "api_error": "InternalServerException", "not_found_error": "ResourceNotFoundException",
    "permission_error": "AccessDeniedException", "timeout": "ModelTimeoutException",
}  # fmt: skip


class Converse(Speech):
    wire = "bedrock_converse"
    ping = frame("somethingNew", {"a": 1})

    def event(self, payload: bytes) -> bytes:
        return frame("contentBlockDelta", payload)

    def usage(self, prompt: Any, output: Any) -> Json:
        return {"inputTokens": prompt, "outputTokens": output, "totalTokens": 27}

    def _usage(self, said: Said) -> Json:
        if said.usage is None:
            return {}
        return {"usage": self.usage(20, 7) if isinstance(said.usage, str) else said.usage}

    def _more(self, said: Said) -> Json:
        return {"strange": {"a": [1]}} if said.more else {}

    def stream(self, said: Said) -> list[bytes]:
        events = [frame("messageStart", {"role": "assistant", "p": "abc", **self._more(said)})]
        text = said.refusal or said.text
        if text:  # has no start of its own
            events.append(frame("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": text}}))
            events.append(frame("contentBlockStop", {"contentBlockIndex": 0}))
        for at, tool in enumerate(said.tools, 1 if text else 0):
            head = {"toolUse": {"toolUseId": tool.id, "name": tool.name}}
            events.append(frame("contentBlockStart", {"contentBlockIndex": at, "start": head}))
            deltas = [{"contentBlockIndex": at, "delta": {"toolUse": {"input": one}}} for one in tool.pieces]
            events += [frame("contentBlockDelta", one) for one in deltas]
            events.append(frame("contentBlockStop", {"contentBlockIndex": at}))
        events.append(frame("messageStop", {"stopReason": self._reason(said), **self._more(said)}))
        last = {**self._usage(said), "metrics": {"latencyMs": 9}}
        return [*events, frame("metadata", last)]

    def whole(self, said: Said) -> Json:
        text = said.refusal or said.text
        content: list[Json] = [{"text": text}] if text else []
        content += [{"toolUse": {"toolUseId": one.id, "name": one.name, "input": _parsed(one)}} for one in said.tools]
        answer = {"message": {"role": "assistant", "content": content}}
        told = {"output": answer, "stopReason": self._reason(said), "metrics": {"latencyMs": 9}}
        return {**told, **self._usage(said), **self._more(said)}

    @staticmethod
    def _reason(said: Said) -> str:
        return "guardrail_intervened" if said.refusal else said.reason or ("tool_use" if said.tools else "end_turn")

    def error(self, kind: str, message: str, code: str | None = None) -> Json:
        return {"message": message, "__type": code or NAMES.get(kind, kind)}

    def error_headers(self, kind: str, code: str | None) -> tuple[str, ...]:
        return (f"x-amzn-errortype: {code or NAMES.get(kind, kind)}:http://internal.amazon.com/coral/",)

    def error_event(self, kind: str, message: str) -> bytes:
        told = NAMES.get(kind, kind)
        return frame(told[0].lower() + told[1:], {"message": message}, "exception")


def _parsed(tool: Tool) -> Any:
    try:
        return json.loads("".join(tool.pieces))
    except (ValueError, RecursionError):
        return "".join(tool.pieces)


SPEECHES: dict[str, Speech] = {one.wire: one for one in (Native(), Chat(), Responses(), Converse())}

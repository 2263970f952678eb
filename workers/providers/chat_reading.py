"""Owns the reading of chat completions: chunks, or one whole answer, become the events of a reply.

Servers that speak this wire differ most in their tool calls, so those are gathered by rules that hold for all: by
index, else by id, else the last one; told whole once the answer ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from shared.providers.declaration import Reasoning
from shared.request import canonical
from shared.request.dialect import EXTRA
from workers.providers import chat_usage, events
from workers.providers.assembly import Assembly, BadStream
from workers.providers.loose import object_of
from workers.providers.writing import Writer

_REASONS = {
    "stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "function_call": "tool_use",
    "content_filter": "refusal", "eos": "end_turn", "model_length": "max_tokens",
}  # fmt: skip
MOST_CALLS = 1_000


@dataclass(slots=True)
class _Call:
    id: str | None = None
    index: object = None
    name: str = ""
    arguments: list[str] = field(default_factory=list[str])
    extra: object = None
    told: bool = False


class ChatReader:
    def __init__(self, made: Assembly, by: str, reasoning: Reasoning) -> None:
        self._made = made
        self._writer = Writer(made)
        self._seal = {"by": by, "key": reasoning.value} if reasoning is Reasoning.CONTENT else {}
        self._keeps_details = reasoning is Reasoning.DETAILS
        self._by = by
        self._calls: list[_Call] = []
        self._details: list[dict[str, Any]] = []
        self._usage: object = None
        self._finish: str | None = None
        self._refused = False
        self._thoughts = 0
        self._thinking = False

    def feed(self, event: dict[str, Any]) -> None:
        if event.get("type") == events.DONE:
            if not self._made.began:
                raise BadStream("an end before a beginning")
            self._end()
            return
        self._chunk(event)

    def ended(self) -> None:
        """Some servers close without their last word; what told its finish is whole."""
        if self._finish is not None and not self._made.whole:
            self._end()

    def whole(self, body: dict[str, Any]) -> None:
        choices: object = body.get("choices")
        if not isinstance(choices, list) or not choices:
            raise BadStream("an answer without choices")
        self._chunk(body)
        self._end()

    def _chunk(self, chunk: dict[str, Any]) -> None:
        self._made.tick()
        self._writer.begin(chunk)
        if isinstance(chunk.get("usage"), dict):
            self._usage = chunk["usage"]
        choices: object = chunk.get("choices")
        if choices is None:
            return
        if not isinstance(choices, list):
            raise BadStream("choices that are no list")
        for choice in cast("list[object]", choices):
            if not isinstance(choice, dict):
                raise BadStream("a choice that is no object")
            self._choice(cast("dict[str, Any]", choice))

    def _choice(self, choice: dict[str, Any]) -> None:
        if choice.get("index") not in (0, None):  # one was asked for
            return
        if isinstance(choice.get("usage"), dict):
            self._usage = choice["usage"]
        told: object = choice.get("delta") if choice.get("delta") is not None else choice.get("message")
        delta = object_of(told)
        self._reason(delta)
        self._say(delta.get("content"))
        if delta.get("refusal"):
            self._refused = True
            self._writer.text("refusal", delta["refusal"])
        calls: object = delta.get("tool_calls")
        whole = told is choice.get("message")  # its calls are not in pieces: two with one id are two
        for at, call in enumerate(cast("list[object]", calls) if isinstance(calls, list) else []):
            self._call({**object_of(call), "index": at} if whole else object_of(call))
        if choice.get("finish_reason") is not None:
            self._finish = str(choice["finish_reason"])[:80]

    def _reason(self, delta: Mapping[str, Any]) -> None:
        details: object = delta.get("reasoning_details")
        if self._keeps_details and isinstance(details, list):
            for one in cast("list[object]", details):
                self._detail(object_of(one))
        piece: object = delta.get("reasoning_content")
        if piece is None:
            piece = delta.get("reasoning")
        if isinstance(piece, str) and piece:
            self._thought(piece)

    def _thought(self, piece: object) -> None:
        if not self._thinking:
            self._thoughts += 1
            self._thinking = True
        self._writer.reasoning(self._thoughts, self._seal, piece)

    def _say(self, content: object) -> None:
        match content:
            case None | "":
                return
            case str():
                self._thinking = False
                self._writer.text("content", content)
            case list():
                for part in cast("list[object]", content):
                    self._part(object_of(part))
            case _:
                raise BadStream(f"content of kind {type(content).__name__}")

    def _part(self, part: Mapping[str, Any]) -> None:
        """Content in parts (Mistral): texts, and thoughts that are parts themselves."""
        match part.get("type"):
            case "text":
                self._say(part.get("text"))
            case "thinking":
                inner: object = part.get("thinking")
                texts = cast("list[object]", inner) if isinstance(inner, list) else [{"text": inner}]
                for text in texts:
                    if object_of(text).get("text"):
                        self._thought(object_of(text)["text"])
            case _:
                pass

    def _detail(self, told: Mapping[str, Any]) -> None:
        """Entries come in pieces with an index: texts of one entry are joined, all else stands as it came last."""
        last = self._details[-1] if self._details else None
        same = last is not None and last.get("index") == told.get("index") and last.get("type") == told.get("type")
        if last is None or not same or told.get("index") is None:
            if len(self._details) >= MOST_CALLS:
                raise BadStream("more reasoning entries than any answer has")
            self._details.append(dict(told))
            return
        for key, value in told.items():
            before = last.get(key)
            joins = key in ("text", "summary", "data") and isinstance(before, str) and isinstance(value, str)
            if joins:
                last[key] = f"{before}{value}"
            elif value is not None:
                last[key] = value

    def _call(self, told: Mapping[str, Any]) -> None:
        function = object_of(told.get("function"))
        name: object = function.get("name")
        call = self._found(told.get("index"), told.get("id"), name)
        if isinstance(told.get("id"), str) and told["id"] and call.id is None:
            call.id = told["id"]
        if isinstance(name, str) and name and name != call.name:
            call.name += name
        if call.name and not call.told:
            call.told = True
            self._writer.preparing(call.name)
        arguments: object = function.get("arguments")
        if isinstance(arguments, dict | list):  # some servers send the object itself
            arguments = canonical.dump(cast("object", arguments))
        if isinstance(arguments, str) and arguments:
            self._made.count(arguments)
            call.arguments.append(arguments)
        elif arguments is not None and not isinstance(arguments, str):
            raise BadStream(f"arguments of kind {type(arguments).__name__}")
        if told.get("extra_content") is not None:
            call.extra = told["extra_content"]

    def _found(self, index: object, told_id: object, name: object) -> _Call:
        """The call that a piece belongs to. An index that comes again with another id and a name is another call: some
        servers send all of theirs with index 0."""
        known = next((one for one in reversed(self._calls) if index is not None and one.index == index), None)
        other = isinstance(told_id, str) and told_id and known is not None and known.id not in (None, told_id)
        if known is not None and not (other and name):
            return known
        if known is None and index is None and self._calls:
            by_id = next((one for one in self._calls if told_id and one.id == told_id), None)
            if by_id is not None or not name:
                return by_id or self._calls[-1]
        if len(self._calls) >= MOST_CALLS:
            raise BadStream("more calls than any answer has")
        call = _Call(index=index)
        self._calls.append(call)
        return call

    def _end(self) -> None:
        if self._details:
            self._writer.seal("details", {"by": self._by, "key": Reasoning.DETAILS.value}, self._details)
        for nth, call in enumerate(self._calls):
            told_id = call.id or ""
            if call.extra is not None and told_id:
                self._writer.seal(("extra", nth), {"by": self._by, "key": EXTRA, "call": told_id}, call.extra)
            self._writer.call({"id": call.id, "name": call.name}, "".join(call.arguments))
        reason = _REASONS.get(self._finish or "stop", self._finish or "end_turn")
        if self._calls and reason == "end_turn":  # some servers say `stop` after calls too
            reason = "tool_use"
        refusal = "declined" if self._refused else None
        self._writer.end("refusal" if self._refused else reason, chat_usage.of_chat(self._usage), refusal)

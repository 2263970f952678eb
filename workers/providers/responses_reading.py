"""Owns the reading of the Responses API: events of items, or one whole response, become the events of a reply.

An item as it is told at its end is the truth: reasoning goes back just so, and a call's arguments are those.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from shared.request import canonical
from shared.request.dialect import ITEM, PHASE
from workers.providers import chat_usage
from workers.providers.assembly import Assembly, BadStream, UnexpectedBlock
from workers.providers.loose import object_of
from workers.providers.writing import Writer

_ENDS = {"response.completed", "response.incomplete"}
_TEXTS = {"response.output_text.delta", "response.refusal.delta"}
_THOUGHTS = {"response.reasoning_summary_text.delta", "response.reasoning_text.delta"}
_INCOMPLETE = {"max_output_tokens": "max_tokens", "content_filter": "refusal"}
MOST_ITEMS = 1_000


class ResponsesReader:
    def __init__(self, made: Assembly, by: str) -> None:
        self._made = made
        self._writer = Writer(made)
        self._by = by
        self._done: set[int] = set()
        self._said: set[int] = set()
        self._added_items: set[int] = set()
        self._called = False
        self._refused = False

    def feed(self, event: dict[str, Any]) -> None:
        kind = event["type"]
        if not self._made.began and kind.startswith("response."):
            self._writer.begin(object_of(event.get("response")))
        self._made.tick()
        if kind in _TEXTS:
            self._text(event, event.get("delta"), refusal=kind == "response.refusal.delta")
        elif kind in _THOUGHTS:
            self._writer.reasoning(_at(event), self._item_seal(), event.get("delta"))
        elif kind == "response.output_item.added":
            self._added(_at(event), object_of(event.get("item")))
        elif kind == "response.output_item.done":
            self._finished(_at(event), object_of(event.get("item")))
        elif kind == "response.function_call_arguments.delta" and isinstance(event.get("delta"), str):
            self._made.count(event["delta"])
        elif kind in _ENDS:
            self._end(object_of(event.get("response")))

    def ended(self) -> None:
        """Nothing: a stream that ends without its last event was cut."""

    def whole(self, body: dict[str, Any]) -> None:
        if body.get("status") not in ("completed", "incomplete"):
            raise BadStream("an answer that is no response")
        self._writer.begin(body)
        self._end(body)

    def _added(self, at: int, item: Mapping[str, Any]) -> None:
        self._added_items.add(at)
        match item.get("type"):
            case "function_call":
                self._writer.preparing(item.get("name"))
            case "reasoning":
                self._writer.reasoning(at, self._item_seal())
            case "message" if isinstance(item.get("phase"), str):
                self._writer.seal(("phase", at), {"by": self._by, "key": PHASE}, item["phase"])
            case "message":
                pass
            case kind:
                raise UnexpectedBlock(str(kind)[:80])

    def _text(self, event: Mapping[str, Any], piece: object, *, refusal: bool) -> None:
        self._refused = self._refused or refusal
        self._said.add(_at(event))
        self._writer.text((_at(event), event.get("content_index")), piece)

    def _finished(self, at: int, item: Mapping[str, Any]) -> None:
        if at in self._done:
            raise BadStream(f"item {at} ends twice")
        if len(self._done) >= MOST_ITEMS:
            raise BadStream("more items than any answer has")
        self._done.add(at)
        match item.get("type"):
            case "function_call":
                self._call(item)
            case "reasoning":
                self._writer.seal(at, self._item_seal(), dict(item))
            case "message":
                self._message(at, item)
            case kind:
                raise UnexpectedBlock(str(kind)[:80])

    def _call(self, item: Mapping[str, Any]) -> None:
        self._called = True
        arguments: object = item.get("arguments")
        text = canonical.dump(cast("object", arguments)) if isinstance(arguments, dict) else arguments
        self._writer.call({"id": item.get("call_id"), "name": item.get("name")}, text if isinstance(text, str) else "")

    def _message(self, at: int, item: Mapping[str, Any]) -> None:
        if at in self._said:
            return
        content: object = item.get("content")
        for index, told in enumerate(cast("list[object]", content) if isinstance(content, list) else []):
            part = object_of(told)
            refusal = part.get("type") == "refusal"
            piece = part.get("refusal") if refusal else part.get("text")
            if piece:
                self._text({"output_index": at, "content_index": index}, piece, refusal=refusal)

    def _end(self, response: Mapping[str, Any]) -> None:
        output: object = response.get("output")
        for at, told in enumerate(cast("list[object]", output) if isinstance(output, list) else []):
            if at not in self._done:  # a server that tells its items only in the end
                item = object_of(told)
                if at not in self._added_items:
                    self._added(at, item)
                self._finished(at, item)
        why = object_of(response.get("incomplete_details")).get("reason")
        reason = "tool_use" if self._called else "end_turn"
        if response.get("status") == "incomplete":
            reason = _INCOMPLETE.get(str(why), str(why)[:80])
        refusal = "declined" if self._refused else None
        usage = chat_usage.of_responses(response.get("usage"))
        self._writer.end("refusal" if self._refused else reason, usage, refusal)

    def _item_seal(self) -> dict[str, Any]:
        return {"by": self._by, "key": ITEM}


def _at(event: Mapping[str, Any]) -> int:
    at: object = event.get("output_index")
    if type(at) is not int or at < 0:
        raise BadStream(f"{str(event.get('type'))[:60]} without its item")
    return at

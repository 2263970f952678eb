"""Owns the reading of Bedrock's Converse: frames of a stream, or one whole answer, become the events of a reply.

A text has no start of its own there, an answer neither id nor model, and the usage comes after the end, in an event
that may be missing.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from shared.request import canonical
from shared.request.dialect import REASONED
from workers.providers.assembly import Assembly, BadStream, UnexpectedBlock
from workers.providers.loose import object_of
from workers.providers.writing import Writer

_REFUSED = {"guardrail_intervened", "content_filtered"}
_BROKEN = {"malformed_model_output", "malformed_tool_use"}
MOST_BLOCKS = 1_000


@dataclass(slots=True)
class _Block:
    """One block of content while it comes. `kind` is empty until its first delta, or its start, says what it is."""

    at: int
    kind: str = ""
    head: dict[str, Any] = field(default_factory=dict[str, Any])
    pieces: list[str] = field(default_factory=list[str])
    signature: str = ""
    redacted: list[str] = field(default_factory=list[str])


class ConverseReader:
    def __init__(self, made: Assembly, by: str) -> None:
        self._made = made
        self._writer = Writer(made)
        self._seal = {"by": by, "key": REASONED}
        self._open: _Block | None = None
        self._last = -1
        self._reason: str | None = None
        self._usage: object = None
        self._told_usage = False

    def feed(self, event: dict[str, Any]) -> None:
        self._made.tick()
        kind = event["type"]
        if kind == "messageStart":
            if self._made.began:
                raise BadStream("a second messageStart")
            self._writer.begin({})
        elif kind in ("contentBlockStart", "contentBlockDelta", "contentBlockStop"):
            if not self._made.began or self._reason is not None:
                raise BadStream(f"{kind} outside of the message")
            self._of_block(kind, _index(event), event)
        elif kind == "messageStop":
            self._stop(event)
        elif kind == "metadata":
            self._usage, self._told_usage = event.get("usage"), True
        # Kinds to come are ignored, as the SDK does.
        if self._reason is not None and self._told_usage:
            self._end()

    def ended(self) -> None:
        """A stream that told its end and not its usage is whole; the bill is unknown."""
        if self._reason is not None and not self._made.whole:
            self._end()

    def whole(self, body: dict[str, Any]) -> None:
        message = object_of(object_of(body.get("output")).get("message"))
        content: object = message.get("content")
        if not isinstance(content, list) or not isinstance(body.get("stopReason"), str):
            raise BadStream("an answer that is no message")
        self._writer.begin({})
        for at, told in enumerate(cast("list[object]", content)):
            self._whole_block(at, object_of(told))
        self._reason, self._usage = body["stopReason"], body.get("usage")
        self._end()

    def _of_block(self, kind: str, at: int, event: Mapping[str, Any]) -> None:
        match kind:
            case "contentBlockStart":
                self._start(at, object_of(event.get("start")))
            case "contentBlockDelta":
                self._delta(self._at(at), object_of(event.get("delta")))
            case _:
                block = self._open
                if block is None or block.at != at:
                    raise BadStream(f"contentBlockStop for content block {at}, which is not open")
                self._close(block)

    def _at(self, at: int) -> _Block:
        """The block that a delta belongs to: the open one, or a new one, as texts begin without a start."""
        if self._open is not None and self._open.at == at:
            return self._open
        if self._open is not None or at <= self._last:
            raise BadStream(f"content block {at} where another was open or had ended")
        if at > MOST_BLOCKS:
            raise BadStream("more content blocks than any answer has")
        self._last, self._open = at, _Block(at)
        return self._open

    def _start(self, at: int, start: Mapping[str, Any]) -> None:
        if self._open is not None:
            raise BadStream(f"content block {at} begins inside another")
        block = self._at(at)
        if "toolUse" in start:
            tool = object_of(start["toolUse"])
            self._become(block, "toolUse", {"id": tool.get("toolUseId"), "name": tool.get("name")})
            self._writer.preparing(tool.get("name"))
        elif start:
            raise UnexpectedBlock(next(iter(start))[:80])

    def _become(self, block: _Block, kind: str, head: dict[str, Any] | None = None) -> None:
        if block.kind not in ("", kind):
            raise BadStream(f"{kind} in a block of kind {block.kind}")
        block.kind = kind
        block.head = head or block.head

    def _delta(self, block: _Block, delta: Mapping[str, Any]) -> None:
        for kind, told in delta.items():
            match kind:
                case "text":
                    self._become(block, kind)
                    self._writer.text(block.at, told)
                case "toolUse":
                    if block.kind != kind:
                        raise BadStream("the input of a call that has not begun")
                    piece: object = object_of(told).get("input")
                    if not isinstance(piece, str):
                        raise BadStream(f"an input of kind {type(piece).__name__}")
                    self._made.count(piece)
                    block.pieces.append(piece)
                case "reasoningContent":
                    self._become(block, kind)
                    self._think(block, object_of(told))
                case "toolResult" | "image":
                    raise UnexpectedBlock(kind)
                case _:  # citations and kinds to come carry nothing that is sent back
                    pass

    def _think(self, block: _Block, told: Mapping[str, Any]) -> None:
        piece = told.get("text")
        self._writer.reasoning(block.at, self._seal, piece)
        if isinstance(piece, str):
            block.pieces.append(piece)
        for kind in ("signature", "redactedContent"):
            value: object = told.get(kind)
            if isinstance(value, str) and value:
                self._made.count(value)
                if kind == "signature":
                    block.signature += value
                else:
                    block.redacted.append(value)

    def _close(self, block: _Block) -> None:
        self._open = None
        match block.kind:
            case "toolUse":
                self._writer.call(block.head, "".join(block.pieces))
            case "reasoningContent":
                value = _thought(block)
                if value is None:
                    self._writer.close()
                else:
                    self._writer.seal(block.at, self._seal, value)
            case _:
                self._writer.close()

    def _whole_block(self, at: int, told: Mapping[str, Any]) -> None:
        block = self._at(at)
        for kind, value in told.items():
            match kind:
                case "text":
                    self._writer.text(at, value)
                case "toolUse":
                    tool = object_of(value)
                    self._writer.preparing(tool.get("name"))
                    given: object = tool.get("input")
                    self._become(block, kind, {"id": tool.get("toolUseId"), "name": tool.get("name")})
                    block.pieces.append(
                        given if isinstance(given, str) else canonical.dump({} if given is None else given)
                    )
                case "reasoningContent":
                    self._become(block, kind)
                    inner = object_of(value)
                    self._think(block, {**object_of(inner.get("reasoningText")), **inner})
                case "citationsContent":
                    for part in cast("list[object]", object_of(value).get("content") or []):
                        self._writer.text(at, object_of(part).get("text"))
                case _:
                    raise UnexpectedBlock(kind[:80])
        self._close(block)

    def _stop(self, event: Mapping[str, Any]) -> None:
        if not self._made.began:
            raise BadStream("messageStop before messageStart")
        if self._open is not None:
            self._made.notes.append("block_not_closed")
            self._close(self._open)
        self._reason = str(event.get("stopReason"))[:80]

    def _end(self) -> None:
        reason = self._reason or "end_turn"
        told = usage(self._usage)
        if reason in _BROKEN:
            self._writer.close()
            self._made.feed({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": told})
            raise BadStream(f"the model's own answer was not well formed ({reason})")
        refused = reason in _REFUSED
        self._writer.end("refusal" if refused else reason, told, reason if refused else None)


def usage(told: object) -> dict[str, Any] | None:
    """Disjoint as told: `inputTokens` is what was neither read from the cache nor written to it. Writes by their time
    to live stand in `cacheDetails`, where they are told. Source: AWS, "Prompt caching", and botocore's TokenUsage."""
    given = object_of(told)
    if given.get("inputTokens") is None or given.get("outputTokens") is None:
        return None
    written: object = given.get("cacheWriteInputTokens") or 0
    details: object = given.get("cacheDetails")
    by_ttl: dict[str, Any] = {}
    for one in cast("list[object]", details) if isinstance(details, list) and written else []:
        by_ttl[str(object_of(one).get("ttl"))] = object_of(one).get("inputTokens")
    parts = {"ephemeral_5m_input_tokens": by_ttl.get("5m", 0), "ephemeral_1h_input_tokens": by_ttl.get("1h", 0)}
    return {
        "input_tokens": given["inputTokens"],
        "output_tokens": given["outputTokens"],
        "cache_read_input_tokens": given.get("cacheReadInputTokens") or 0,
        "cache_creation_input_tokens": written,
        "cache_creation": parts if by_ttl else {},
    }


def _thought(block: _Block) -> dict[str, Any] | None:
    """What goes back: Claude takes its reasoning only with its signature, and elsewhere none is wanted."""
    if block.signature:
        return {"reasoningText": {"text": "".join(block.pieces), "signature": block.signature}}
    if not block.redacted:
        return None
    if len(block.redacted) == 1:
        return {"redactedContent": block.redacted[0]}
    try:
        whole = b"".join(base64.b64decode(one, validate=True) for one in block.redacted)
    except (binascii.Error, ValueError) as error:
        raise BadStream("redacted reasoning that is no base64") from error
    return {"redactedContent": base64.b64encode(whole).decode()}


def _index(event: Mapping[str, Any]) -> int:
    at: object = event.get("contentBlockIndex")
    if type(at) is not int or at < 0:
        raise BadStream(f"{event['type']} without its index")
    return at

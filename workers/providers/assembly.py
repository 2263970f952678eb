"""Owns how stream events become a reply. Invariant: the text deltas it hands out, joined, are the text of the reply.

The order of events is Anthropic's (message_start, blocks, message_delta, message_stop); what breaks it is refused: a
stream whose order is wrong cannot be told from one that lost a part.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from shared.request import canonical
from shared.request.dialect import EXTRA, ITEM, PHASE, REASONED
from shared.request.foreign import seal
from shared.text import bounded, clean_text
from workers.providers import usage as usage_of
from workers.providers.arguments import checked_call
from workers.providers.pieces import Pieces
from workers.providers.replies import (
    Began,
    Delta,
    FirstToken,
    Partial,
    Reasoning,
    ReasoningDelta,
    ReasoningStarted,
    ReasoningStopped,
    ReplyBlock,
    Text,
    TextDelta,
    ToolPreparing,
    Usage,
)

CHARS_LIMIT = 4_000_000
"""Characters of a reply: eight times what 128,000 tokens of output can be."""
EVENTS_LIMIT = 500_000
_WORD_LIMIT = 200
_SILENT = (EXTRA, PHASE, "reasoning_details")
"""Kinds of sealed blocks that are no thought: nobody is told that the model thinks."""


class BadStream(Exception):
    """The stream's events cannot be read as a reply; the text says which."""


class UnexpectedBlock(Exception):
    """A kind of content that we never ask for (server tools): it could be neither stored nor sent back."""


class TooLarge(Exception):
    """More text or more events than any honest reply has."""


@dataclass(slots=True)
class Block:
    kind: str
    head: dict[str, Any]
    pieces: Pieces
    closed: bool = False
    signature: str = ""
    text: str = ""
    waiting: str = ""
    shown: bool = False
    value: object = None
    """Of a sealed block, where its text is not what goes back."""


@dataclass(slots=True)
class Assembly:
    """The state of one stream. `feed` each event; `whole` is true after the last."""

    sink: Callable[[Delta], None]
    since_ms: Callable[[], float]
    hour_marks: Callable[[], bool]
    most_chars: int = CHARS_LIMIT
    known_as: str | None = None
    """By what name the provider knows the call, where its messages have none: ids that are made begin with it."""
    blocks: list[Block] = field(default_factory=list[Block])
    told: dict[str, Any] = field(default_factory=dict[str, Any])
    message: dict[str, Any] = field(default_factory=dict[str, Any])
    stop_reason: str | None = None
    refusal: str | None = None
    first_token_ms: float | None = None
    began: bool = False
    output_told: bool = False
    whole: bool = False
    events: int = 0
    chars: int = 0
    notes: list[str] = field(default_factory=list[str])

    def tick(self) -> None:
        """An event of another wire came, which may become none of ours."""
        self.events += 1
        if self.events > EVENTS_LIMIT:
            raise TooLarge(f"more than {EVENTS_LIMIT:,} events")

    def feed(self, event: dict[str, Any]) -> None:
        self.tick()
        match event["type"]:
            case "content_block_delta":
                self._delta(event)
            case "content_block_start":
                self._start(event)
            case "content_block_stop":
                block = self._block(event)
                block.value = event.get("value")
                self._stop(block)
            case "message_start":
                self._begin(event)
            case "message_delta":
                self._end(event)
            case "message_stop":
                self._whole()
            case _:  # `ping`, and kinds to come: documented as to be ignored
                pass

    def usage(self) -> tuple[Usage | None, str | None]:
        if not self.output_told:  # message_start alone tells one token of output, which is not the bill
            return None, "usage_missing"
        usage, note = usage_of.buckets(self.told, self.hour_marks)
        if usage is not None:
            spoke = any(block.kind != "text" or block.text for block in self.blocks)
            note = usage_of.doubt(usage.output, self.chars, spoke=spoke)
        return (usage, None) if note is None else (None, note)

    def partial(self) -> Partial:
        shown = "".join(block.pieces.text() for block in self.blocks if block.kind == "text")
        return Partial(shown, usage_of.buckets(self.told, self.hour_marks)[0], self.began)

    def content(self) -> tuple[ReplyBlock, ...]:
        taken: set[str] = set()
        seed = str(self.message.get("id") or self.known_as or "")
        content: list[ReplyBlock] = []
        for nth, block in enumerate(self.blocks):
            match block.kind:
                case "text":
                    if not block.text.isspace() and block.text:  # a blank text is refused when it is sent back
                        content.append(Text(block.text))
                case "tool_use":
                    content.append(checked_call(block.head, block.text, taken=taken, seed=f"{seed}.{nth}"))
                case "sealed" if not _goes_back(block):
                    pass
                case _ if _may_go_back(block):
                    content.append(_reasoning(block))
                case _:
                    self.notes.append("reasoning_left_out")
        return tuple(content)

    def prepare(self, name: object) -> None:
        """A tool call begins to come in."""
        self._touch()
        self.sink(ToolPreparing(bounded(clean_text(str(name or "")), _WORD_LIMIT)))

    def count(self, piece: str) -> None:
        """What came of a block that is fed only once it is whole, so that it is bounded all the same."""
        self._count(piece)
        self.chars -= len(piece)

    def _begin(self, event: dict[str, Any]) -> None:
        if self.began:
            raise BadStream("a second message_start")
        self.began = True
        self.message = _object(event, "message")
        self.told = usage_of.merge({}, self.message.get("usage"))
        self.sink(Began(self.since_ms(), usage_of.buckets(self.told, self.hour_marks)[0]))

    def _start(self, event: dict[str, Any]) -> None:
        if not self.began or self.stop_reason is not None:
            raise BadStream("a content block outside of the message")
        if event.get("index") != len(self.blocks):
            raise BadStream(f"content block {str(event.get('index'))[:40]} where {len(self.blocks)} was due")
        head = _object(event, "content_block")
        block = Block(str(head.get("type")), head, Pieces())
        match block.kind:
            case "text":
                self._text(block, head.get("text"))
            case "thinking":
                self.sink(ReasoningStarted())
                block.signature = str(head.get("signature") or "")
                self._thinking(block, head.get("thinking"))
            case "redacted_thinking":
                self.sink(ReasoningStarted())
            case "tool_use":
                if not head.get("told"):
                    self.prepare(head.get("name"))
            case "sealed":
                if head.get("key") not in _SILENT:
                    self.sink(ReasoningStarted())
            case _:
                raise UnexpectedBlock(block.kind)
        self.blocks.append(block)

    def _delta(self, event: dict[str, Any]) -> None:
        block = self._block(event)
        delta = _object(event, "delta")
        match (delta.get("type"), block.kind):
            case ("text_delta", "text"):
                self._text(block, delta.get("text"))
            case ("input_json_delta", "tool_use"):
                self._take(block, delta.get("partial_json"))
            case ("thinking_delta", "thinking" | "sealed"):
                self._thinking(block, delta.get("thinking"))
            case ("signature_delta", "thinking"):
                block.signature += str(delta.get("signature") or "")
                self._count(block.signature)
            case ("text_delta" | "input_json_delta" | "thinking_delta" | "signature_delta", _):
                raise BadStream(f"a {delta.get('type')} in a block of kind {block.kind}")
            case _:  # citations and kinds to come carry nothing that is sent back
                pass

    def _stop(self, block: Block) -> None:
        last = block.pieces.close()
        block.text = block.pieces.raw() if block.kind in ("tool_use", "thinking", "sealed") else block.pieces.text()
        block.closed = True
        if block.kind == "text":
            self._show(block, last)
        if block.kind in ("thinking", "sealed") and last:
            self.sink(ReasoningDelta(last))
        if block.kind in ("thinking", "redacted_thinking") or (
            block.kind == "sealed" and block.head.get("key") not in _SILENT
        ):
            self.sink(ReasoningStopped())

    def _end(self, event: dict[str, Any]) -> None:
        if not self.began:
            raise BadStream("message_delta before message_start")
        delta = _object(event, "delta")
        reason = delta.get("stop_reason")
        self.stop_reason = _word(reason) if reason is not None else self.stop_reason
        details = delta.get("stop_details")
        if isinstance(details, dict):
            self.refusal = _word(cast("dict[str, Any]", details).get("category") or "") or self.refusal
        told: object = event.get("usage")
        if isinstance(told, dict) and cast("dict[str, Any]", told).get("output_tokens") is not None:
            self.output_told = True
        self.told = usage_of.merge(self.told, cast("object", told))

    def _whole(self) -> None:
        if not self.began:
            raise BadStream("message_stop before message_start")
        for block in self.blocks:
            if not block.closed:
                self.notes.append("block_not_closed")
                self._stop(block)
        self.whole = True

    def _block(self, event: dict[str, Any]) -> Block:
        index = event.get("index")
        last = self.blocks[-1] if self.blocks else None
        if last is None or last.closed or type(index) is not int or index != len(self.blocks) - 1:
            raise BadStream(f"{event['type']} for content block {str(index)[:40]}, which is not open")
        return last

    def _text(self, block: Block, piece: object) -> None:
        self._show(block, self._take(block, piece))

    def _show(self, block: Block, piece: str) -> None:
        """Blank text is held back until something visible follows: a block that stays blank is not in the reply."""
        if not block.shown:
            piece = block.waiting + piece
            block.waiting = piece
            block.shown = bool(piece) and not piece.isspace()
        if block.shown and piece:
            self.sink(TextDelta(piece))

    def _thinking(self, block: Block, piece: object) -> None:
        shown = self._take(block, piece)
        if shown:
            self.sink(ReasoningDelta(shown))

    def _take(self, block: Block, piece: object) -> str:
        if not piece:
            return ""
        if not isinstance(piece, str):
            raise BadStream(f"a delta of kind {type(piece).__name__}")
        self._count(piece)
        self._touch()
        return block.pieces.add(piece)

    def _count(self, piece: str) -> None:
        self.chars += len(piece)
        most = min(CHARS_LIMIT, self.most_chars)
        if self.chars > most:
            raise TooLarge(f"more than {most:,} characters")

    def _touch(self) -> None:
        if self.first_token_ms is None:
            self.first_token_ms = self.since_ms()
            self.sink(FirstToken(self.first_token_ms))


def _word(told: object) -> str:
    """A provider's own word, fit to be stored: one NUL in it lost a whole answer that had been paid for."""
    return bounded(clean_text(str(told)), _WORD_LIMIT)


def _goes_back(block: Block) -> bool:
    """Whether its provider wants a sealed block again: else it was for people to read. An item is signed
    and whole, or nothing."""
    key = block.head.get("key")
    return bool(key) and bool(block.value if key in (ITEM, REASONED) else block.value or block.text)


def _may_go_back(block: Block) -> bool:
    """Whether a provider takes this reasoning back. It refuses what is unsigned, and lone surrogates anywhere: either
    one, once stored, would have every later request of the session refused."""
    if block.kind == "thinking" and not block.signature:
        return False
    try:
        json.dumps([block.head, block.text, block.signature, block.value], ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _reasoning(block: Block) -> Reasoning:
    """The block in the key order in which it came, its text as it came: the signature is over both."""
    if block.kind == "sealed":
        by, key, call = (block.head.get(name) for name in ("by", "key", "call"))
        value = block.text if block.value is None else block.value
        return Reasoning(block.pieces.text(), seal(str(by), str(key), value, call))
    if block.kind == "redacted_thinking":
        return Reasoning("", canonical.dump(block.head))
    whole = {**block.head, "thinking": block.text, "signature": block.signature}
    return Reasoning(block.pieces.text(), canonical.dump(whole))


def _object(event: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = event.get(name)
    if not isinstance(value, dict):
        raise BadStream(f"{event.get('type')} without its {name}")
    return cast("dict[str, Any]", value)

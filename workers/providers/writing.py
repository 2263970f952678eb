"""Owns the blocks of a reply whose wire has none: opened when something of theirs comes, one at a time, in order.

Invariant: the events that it feeds are in the order that `Assembly` asks for, whatever order the wire had.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workers.providers.assembly import Assembly


class Writer:
    def __init__(self, made: Assembly) -> None:
        self._made = made
        self._count = 0
        self._open: tuple[str, object] | None = None

    def begin(self, message: Mapping[str, Any]) -> None:
        if not self._made.began:
            head = {"id": message.get("id"), "model": message.get("model")}
            self._made.feed({"type": "message_start", "message": head})

    def text(self, key: object, piece: object) -> None:
        """More text of the part `key` (any hashable value)."""
        self._enter(("text", key), {"type": "text", "text": ""})
        self._delta({"type": "text_delta", "text": piece})

    def reasoning(self, key: object, seal: dict[str, Any], piece: object = "") -> None:
        """More reasoning; `seal` is the head of the block by which it goes back, empty where it does not."""
        self._enter(("sealed", key), {"type": "sealed", **seal})
        if piece:
            self._delta({"type": "thinking_delta", "thinking": piece})

    def seal(self, key: object, seal: dict[str, Any], value: object) -> None:
        """What goes back as it came: the value of the block `key`, which is opened where it is not open."""
        self._enter(("sealed", key), {"type": "sealed", **seal})
        self._made.feed({"type": "content_block_stop", "index": self._count - 1, "value": value})
        self._open = None

    def preparing(self, name: object) -> None:
        """A call's name is known; what it is called with is not yet."""
        self._made.prepare(name)

    def call(self, head: dict[str, Any], arguments: str) -> None:
        """A whole tool call, `head` its id and name. It was told of before."""
        self.close()
        self._start({"type": "tool_use", **head, "told": True})
        self._delta({"type": "input_json_delta", "partial_json": arguments})
        self._stop()

    def close(self) -> None:
        if self._open is not None:
            self._stop()

    def end(self, stop_reason: str, usage: dict[str, Any] | None, refusal: str | None = None) -> None:
        self.close()
        delta = {"stop_reason": stop_reason, **({"stop_details": {"category": refusal}} if refusal else {})}
        self._made.feed({"type": "message_delta", "delta": delta, "usage": usage})
        self._made.feed({"type": "message_stop"})

    def _enter(self, wanted: tuple[str, object], head: dict[str, Any]) -> None:
        if self._open != wanted:
            self.close()
            self._start(head)
            self._open = wanted

    def _start(self, head: dict[str, Any]) -> None:
        self._made.feed({"type": "content_block_start", "index": self._count, "content_block": head})
        self._count += 1

    def _delta(self, delta: dict[str, Any]) -> None:
        self._made.feed({"type": "content_block_delta", "index": self._count - 1, "delta": delta})

    def _stop(self) -> None:
        self._made.feed({"type": "content_block_stop", "index": self._count - 1})
        self._open = None

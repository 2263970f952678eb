"""Owns the reading of Anthropic's wire: its events are the ones that `Assembly` knows; a whole message becomes them."""

from __future__ import annotations

from typing import Any, cast

from workers.providers.assembly import Assembly, BadStream


class NativeReader:
    def __init__(self, made: Assembly) -> None:
        self._made = made

    def feed(self, event: dict[str, Any]) -> None:
        self._made.feed(event)

    def ended(self) -> None:
        """Nothing: a stream that ends without its last event was cut."""

    def whole(self, body: dict[str, Any]) -> None:
        content: object = body.get("content")
        if body.get("type") != "message" or not isinstance(content, list) or body.get("stop_reason") is None:
            raise BadStream("an answer that is no message")
        feed = self._made.feed
        feed({"type": "message_start", "message": body})
        for index, block in enumerate(cast("list[object]", content)):
            if not isinstance(block, dict):
                raise BadStream("a content block that is no object")
            feed({"type": "content_block_start", "index": index, "content_block": block})
            feed({"type": "content_block_stop", "index": index})
        feed({"type": "message_delta", "delta": body, "usage": body.get("usage")})
        feed({"type": "message_stop"})

"""A person's input, made into the payload of an inbox row: the text of a JSON array of blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from api.problems import invalid
from shared.errors import Refused
from shared.request import blocks

MOST_TEXT = 10 * 1024 * 1024
MOST_BLOCKS = 1_000
_LATER = frozenset({"image", "file", "document"})


def payload(given: str | Sequence[dict[str, Any]]) -> str:
    """Raises Refused `input_empty`, `input_too_large` (413), `input_block_unsupported`, `input_block_invalid`."""
    texts = [given] if isinstance(given, str) else [_text_of(at, block) for at, block in enumerate(given)]
    if len(texts) > MOST_BLOCKS:
        raise invalid("input", f"at most {MOST_BLOCKS} blocks", code="input_block_invalid")
    size = sum(len(text.encode("utf-8")) for text in texts)
    if size > MOST_TEXT:
        raise Refused(
            f"the input has {size:,} bytes and may have {MOST_TEXT:,}: send less, or put it into a file",
            code="input_too_large", status=413,
        )  # fmt: skip
    kept = [text for text in texts if text.strip()]
    if not kept:
        raise invalid("input", "must hold some text that is not blank", code="input_empty")
    return blocks.join(blocks.text(text) for text in kept)


def _text_of(at: int, block: dict[str, Any]) -> str:
    kind = block.get("type")
    if kind in _LATER:
        raise invalid(
            f"input.{at}", f"blocks of type '{kind}' cannot be taken yet: send text", code="input_block_unsupported"
        )
    text = block.get("text")
    if kind != "text" or not isinstance(text, str) or set(block) != {"type", "text"}:
        raise invalid(
            f"input.{at}", 'a text block is {"type": "text", "text": "…"} and nothing else', code="input_block_invalid"
        )
    return text

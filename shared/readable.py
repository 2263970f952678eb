"""The text of a stored message as a person reads it, at most 64 kB of it: what is searched, and what a find shows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

from shared import words
from shared.text import clean_text

TEXT_BYTES = 64 * 1024
_KEYS = ("text", "content", "name", "input")
_ENDS = ('"}]', '"}]}]', '"}}]')
_HALF_ESCAPE = re.compile(r"(?<!\\)((?:\\\\)*)\\(?:u[0-9a-fA-F]{0,3})?$")


@dataclass(frozen=True, slots=True)
class Indexed:
    """`folded` is the text, one record a block, without capitals; `words` is the text of a tsvector."""

    folded: str
    words: str


def text_of(content: str) -> str:
    """What a person reads of the text of a JSON array of blocks, which may have been cut off: one record a block."""
    return words.RECORD.join(text for _, text in _records(content))


def indexed(content: str, author: str, role: str) -> Indexed:
    """What is searched of it. A person's words count most, then what the model said, what it asked of tools, and last
    what those answered."""
    parts = [(_weight(block, author, role), words.fold(text)) for block, text in _records(content)]
    return Indexed(words.RECORD.join(folded for _, folded in parts), words.vector(parts))


def _records(content: str) -> Iterator[tuple[Any, str]]:
    left = TEXT_BYTES
    for block in _blocks(content):
        text = "\n".join(_texts(block)).replace(words.RECORD, " ")
        text = clean_text(text).encode()[:left].decode("utf-8", "ignore")
        left = max(0, left - len(text.encode()))
        yield block, text


def _blocks(content: str) -> list[Any]:
    for end in ("", *_ENDS):  # lone surrogates pass json; orjson refuses them
        text = _HALF_ESCAPE.sub(r"\1", content) + end if end else content
        try:
            found: Any = json.loads(text)
        except (ValueError, RecursionError):
            continue
        return cast("list[Any]", found) if isinstance(found, list) else [found]
    return [content]  # cut off elsewhere, or not JSON: its words are still words


def _texts(value: Any) -> list[str]:
    """Every text below the keys that people read; images, ids and signatures are not words."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return [text for item in cast("list[Any]", value) for text in _texts(item)]
    if isinstance(value, dict):
        block = cast("dict[str, Any]", value)
        return [text for key in _KEYS if key in block for text in _texts_of(key, block)]
    return []


def _texts_of(key: str, block: dict[str, Any]) -> list[str]:
    value = block[key]
    return (
        _texts(list(cast("dict[str, Any]", value).values()))
        if key == "input" and isinstance(value, dict)
        else _texts(value)
    )


def _weight(block: Any, author: str, role: str) -> str:
    match cast("dict[str, Any]", block).get("type") if isinstance(block, dict) else None:
        case "tool_use":
            return "C"
        case "tool_result":
            return "D"
        case _:
            return "B" if role == "assistant" else "D" if author in ("tool", "child") else "A"

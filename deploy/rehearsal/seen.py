"""Owns what is known of a message by its bytes: its shape is right, its blocks' digests and sizes, its calls, results.

Requests repeat their past, so each message is looked at once and found again by digest. Bounded.
"""

import re
from collections import OrderedDict
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final

import orjson

from deploy.rehearsal import tokens
from deploy.rehearsal.checks import shape
from deploy.rehearsal.loose import Json, is_object

LIMIT: Final = 100_000
# A float in a compact dump; digits inside a string may match too, which only costs the slower and equally right way.
_FLOAT: Final = re.compile(rb"[:\[,]-?\d+[.eE]")
REASONING: Final = frozenset(("thinking", "redacted_thinking"))


@dataclass(frozen=True, slots=True)
class Block:
    """`raw` is its token count before the model's factor; `mark` the TTL of its cache mark."""

    kind: str
    digest: bytes
    raw: int
    mark: str | None


@dataclass(frozen=True, slots=True)
class Message:
    role: str
    is_string: bool
    blocks: tuple[Block, ...]
    # (block number, id) of calls and of results; `first_other` is the first block that is no result.
    calls: tuple[tuple[int, str], ...]
    results: tuple[tuple[int, str], ...]
    first_other: int | None
    reasoning: tuple[int, ...]
    # The complaint about empty or blank text, if there is one.
    blank: str | None
    has_mark: bool
    has_image: bool
    has_float: bool
    has_citations: bool


_known: OrderedDict[bytes, Message] = OrderedDict()


def know(index: int, message: Any) -> Message:
    """What is known of a message; Refused when its shape is wrong."""
    key = blake2b(orjson.dumps(message), digest_size=16).digest()
    found = _known.get(key)
    if found is None:
        shape.check_message(index, message)
        found = _look(message)
        _known[key] = found
        if len(_known) > LIMIT:
            _known.popitem(last=False)
    return found


def has_float(value: Any) -> bool:
    return _FLOAT.search(orjson.dumps(value)) is not None


def dump_block(block: Any) -> bytes:
    """The bytes that stand for a block in the prefix: as sent, without its cache mark."""
    if is_object(block) and "cache_control" in block:
        return orjson.dumps({key: value for key, value in block.items() if key != "cache_control"})
    return orjson.dumps(block)


def block_of(block: Any) -> Block:
    """One block of tools, system or messages."""
    dumped = dump_block(block)
    digest = blake2b(dumped, digest_size=16).digest()
    raw = tokens.cached_raw_count(digest)
    if raw is None:
        raw = _count(block, dumped)
        tokens.remember(digest, raw)
    if isinstance(block, str):
        return Block("string", digest, raw, None)
    return Block(block.get("type", "tool"), digest, raw, mark_of(block))


def mark_of(block: Json) -> str | None:
    """The TTL of a block's cache mark, or None."""
    control = block.get("cache_control")
    return None if control is None else control.get("ttl") or "5m"


def _look(message: Json) -> Message:
    content = message["content"]
    is_string = isinstance(content, str)
    blocks: list[Any] = [content] if is_string else content
    kinds = ["text" if is_string else block["type"] for block in blocks]
    looked = () if not content else tuple(block_of(block) for block in blocks)
    return Message(
        role=message["role"],
        is_string=is_string,
        blocks=looked,
        calls=tuple((at, blocks[at]["id"]) for at, kind in enumerate(kinds) if kind == "tool_use"),
        results=tuple((at, blocks[at]["tool_use_id"]) for at, kind in enumerate(kinds) if kind == "tool_result"),
        first_other=next((at for at, kind in enumerate(kinds) if kind != "tool_result"), None),
        reasoning=tuple(at for at, kind in enumerate(kinds) if kind in REASONING),
        blank=_blank(blocks, kinds),
        has_mark=any(block.mark is not None for block in looked),
        has_image="image" in kinds,
        has_float=any(kind == "tool_use" and has_float(blocks[at]["input"]) for at, kind in enumerate(kinds)),
        has_citations=any(
            kind == "text" and not is_string and blocks[at].get("citations") for at, kind in enumerate(kinds)
        ),
    )


def _blank(blocks: list[Any], kinds: list[str]) -> str | None:
    for block, kind in zip(blocks, kinds, strict=True):
        if kind != "text":
            continue
        text: str = block if isinstance(block, str) else block["text"]
        if not text:
            return "messages: text content blocks must be non-empty"
        if text.isspace():
            return "messages: text content blocks must contain non-whitespace text"
    return None


def _count(block: Any, dumped: bytes) -> int:
    if isinstance(block, str):
        return tokens.raw_count(block)
    match block.get("type"):
        case "text":
            return tokens.raw_count(block["text"])
        case "thinking":
            return tokens.raw_count(block["thinking"])
        case "image":
            return tokens.IMAGE_TOKENS
        case "tool_result":
            content = block.get("content") or ""
            name = tokens.raw_count(block["tool_use_id"])
            if isinstance(content, str):
                return tokens.raw_count(content) + name
            return sum(_count(part, orjson.dumps(part)) for part in content) + name
        case _:
            return tokens.raw_count(dumped.decode())

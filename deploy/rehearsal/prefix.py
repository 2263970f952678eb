"""Owns the prefix: a request as one row of blocks over tools, system and messages, with a rolling digest.

Invariant: two requests have the same digest at a position exactly when everything up to it was sent alike: order of
keys, text of numbers, string or list shape, roles. Cache marks are not part of it, nor is how a string was escaped.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final

import orjson

from deploy.rehearsal import tokens
from deploy.rehearsal.loose import Json
from deploy.rehearsal.models import Model

TOOLS, SYSTEM, MESSAGES = 0, 1, 2
REPLY_HEADER_TOKENS: Final = 3
MESSAGE_TOKENS: Final = 4
ROLE_FLAG: Final = {"user": b"u", "assistant": b"a", "system": b"S"}
# A float in a compact dump; digits inside a string may match too, which only costs the slower and equally right way.
_FLOAT: Final = re.compile(rb"[:\[,]-?\d+[.eE]")


@dataclass(slots=True)
class Prefix:
    """Position p (1-based) is block p; lists are indexed by p - 1. `ends` are tokens up to and including the block."""

    model: Model
    chains: list[bytes] = field(default_factory=list[bytes])
    labels: list[tuple[int, int, int, str]] = field(default_factory=list[tuple[int, int, int, str]])
    ends: list[int] = field(default_factory=list[int])
    marks: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    # Positions before each message's first block, by message index.
    message_starts: list[int] = field(default_factory=list[int])

    @property
    def total(self) -> int:
        return (self.ends[-1] if self.ends else 0) + REPLY_HEADER_TOKENS

    def section(self, position: int) -> int:
        return self.labels[position - 1][0]

    def chain_at(self, position: int) -> bytes:
        return self.chains[position - 1] if position else b""

    def describe(self, position: int) -> str:
        """Where a block stands, in the path notation of the service's own errors, and its type."""
        section, first, second, kind = self.labels[position - 1]
        if section == TOOLS:
            return f"tools.{first} ({kind})"
        if section == SYSTEM:
            return f"system.{first} ({kind})"
        return f"messages.{first}.content.{second} ({kind})"


def without_mark(block: Json) -> Json:
    return {key: value for key, value in block.items() if key != "cache_control"} if "cache_control" in block else block


def build(
    body: bytes,
    request: Json,
    model: Model,
    automatic: str | None = None,
    skip: frozenset[tuple[int, int]] = frozenset(),
) -> Prefix:
    """The prefix of a request whose shape is valid. `skip` names (message, block) pairs that the service leaves out."""
    source = request
    if _has_floats(request):
        source = json.loads(body, parse_float=_verbatim, parse_int=_verbatim)
    prefix = Prefix(model)
    chain = b""
    for flag, label, block, mark in _walk(source, prefix, skip):
        chain = _append(prefix, chain, flag, label, block, mark)
    if automatic is not None:
        _mark_last(prefix, automatic)
    return prefix


def _mark_last(prefix: Prefix, ttl: str) -> None:
    for position in range(len(prefix.chains), 0, -1):
        if prefix.labels[position - 1][3] not in ("thinking", "redacted_thinking"):
            if not any(at == position for at, _ in prefix.marks):
                prefix.marks.append((position, ttl))
                prefix.marks.sort()
            return


def _verbatim(text: str) -> Any:
    return orjson.Fragment(text)


def _has_floats(request: Json) -> bool:
    tools = request.get("tools")
    if tools and _FLOAT.search(orjson.dumps(tools)):
        return True
    for message in request["messages"]:
        if message["role"] == "assistant" and not isinstance(message["content"], str):
            for block in message["content"]:
                if block["type"] == "tool_use" and block["input"] and _FLOAT.search(orjson.dumps(block["input"])):
                    return True
    return False


_Step = tuple[bytes, tuple[int, int, int, str], Any, str | None]


def _walk(source: Json, prefix: Prefix, skip: frozenset[tuple[int, int]]) -> Iterable[_Step]:
    for index, tool in enumerate(source.get("tools") or ()):
        yield b"t", (TOOLS, index, 0, str(tool.get("name", tool.get("type", "")))), without_mark(tool), mark_of(tool)
    system = source.get("system")
    if isinstance(system, str):
        yield b"s", (SYSTEM, 0, 0, "string"), system, None
    else:
        for index, block in enumerate(system or ()):
            yield b"s", (SYSTEM, index, 0, "text"), without_mark(block), mark_of(block)
    for index, message in enumerate(source["messages"]):
        flag = ROLE_FLAG[message["role"]]
        prefix.message_starts.append(len(prefix.chains))
        content = message["content"]
        if isinstance(content, str):
            yield flag, (MESSAGES, index, 0, "string"), content, None
            continue
        for number, block in enumerate(content):
            if (index, number) in skip:
                continue
            yield flag, (MESSAGES, index, number, block["type"]), without_mark(block), mark_of(block)
            flag = b"+"


def mark_of(block: Json) -> str | None:
    """The TTL of a block's cache mark, or None."""
    control = block.get("cache_control")
    if control is None:
        return None
    return control.get("ttl") or "5m"


def _append(
    prefix: Prefix, chain: bytes, flag: bytes, label: tuple[int, int, int, str], block: Any, mark: str | None
) -> bytes:
    dumped = orjson.dumps(block)
    digest = blake2b(dumped, digest_size=16).digest()
    chain = blake2b(chain + flag + digest, digest_size=16).digest()
    raw = tokens.cached_raw_count(digest)
    if raw is None:
        raw = _count(block, dumped)
        tokens.remember(digest, raw)
    count = tokens.scaled(raw, prefix.model.token_factor) + tokens.BLOCK_OVERHEAD
    if flag != b"+" and label[0] == MESSAGES:
        count += MESSAGE_TOKENS
    if label[0] == TOOLS and not prefix.chains:
        count += prefix.model.hidden_tool_prompt
    prefix.chains.append(chain)
    prefix.labels.append(label)
    prefix.ends.append((prefix.ends[-1] if prefix.ends else 0) + count)
    if mark is not None:
        prefix.marks.append((len(prefix.chains), mark))
    return chain


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
            if isinstance(content, str):
                return tokens.raw_count(content) + tokens.raw_count(block["tool_use_id"])
            return sum(_count(part, orjson.dumps(part)) for part in content) + tokens.raw_count(block["tool_use_id"])
        case _:
            return tokens.raw_count(dumped.decode())

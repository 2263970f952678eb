"""Owns the prefix: a request as one row of blocks over tools, system and messages, with a rolling digest.

Invariant: two requests have the same digest at a position exactly when everything up to it was sent alike: order of
keys, text of numbers, string or list shape, roles. Cache marks are not part of it, nor is how a string was escaped.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from math import ceil
from typing import Any, Final

import orjson

from deploy.rehearsal import seen, tokens
from deploy.rehearsal.loose import Json
from deploy.rehearsal.models import Model
from deploy.rehearsal.seen import Block, Message

TOOLS, SYSTEM, MESSAGES = 0, 1, 2
REPLY_HEADER_TOKENS: Final = 3
MESSAGE_TOKENS: Final = 4
ROLE_FLAG: Final = {"user": b"u", "assistant": b"a", "system": b"S"}


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


def build(
    body: bytes,
    request: Json,
    known: Sequence[Message],
    model: Model,
    automatic: str | None = None,
    skip: frozenset[tuple[int, int]] = frozenset(),
) -> Prefix:
    """The prefix of a request whose shape is valid. `skip` names (message, block) pairs that the service leaves out."""
    tools: Any = request.get("tools") or ()
    system: Any = request.get("system") or ()
    exact: Json | None = None
    if any(message.has_float for message in known) or (tools and seen.has_float(tools)):
        # Parsing would lose how a number was written: 1e2 and 100.0 are different prefixes.
        exact = json.loads(body, parse_float=_verbatim, parse_int=_verbatim)
        assert exact is not None
        tools = exact.get("tools") or ()
    prefix = Prefix(model)
    for index, tool in enumerate(tools):
        _append(prefix, b"t", (TOOLS, index, 0, str(tool["name"])), seen.block_of(tool))
    for index, block in enumerate((system,) if isinstance(system, str) else system):
        found = seen.block_of(block)
        _append(prefix, b"s", (SYSTEM, index, 0, found.kind), found)
    for index, message in enumerate(known):
        blocks = message.blocks
        if exact is not None and message.has_float:
            blocks = tuple(seen.block_of(block) for block in exact["messages"][index]["content"])
        prefix.message_starts.append(len(prefix.chains))
        flag = ROLE_FLAG[message.role]
        for number, block in enumerate(blocks):
            if skip and (index, number) in skip:
                continue
            _append(prefix, flag, (MESSAGES, index, number, block.kind), block)
            flag = b"+"
    if automatic is not None:
        _mark_last(prefix, automatic)
    return prefix


def _verbatim(text: str) -> Any:
    return orjson.Fragment(text)


def _mark_last(prefix: Prefix, ttl: str) -> None:
    for position in range(len(prefix.chains), 0, -1):
        if prefix.labels[position - 1][3] not in seen.REASONING:
            if not any(at == position for at, _ in prefix.marks):
                prefix.marks.append((position, ttl))
                prefix.marks.sort()
            return


def _append(prefix: Prefix, flag: bytes, label: tuple[int, int, int, str], block: Block) -> None:
    chains, ends = prefix.chains, prefix.ends
    count = ceil(block.raw * prefix.model.token_factor) + tokens.BLOCK_OVERHEAD
    if chains:
        chain, end = chains[-1], ends[-1]
    else:
        chain, end = b"", 0
        if label[0] == TOOLS:
            count += prefix.model.hidden_tool_prompt
    if flag != b"+" and label[0] == MESSAGES:
        count += MESSAGE_TOKENS
    chains.append(blake2b(chain + flag + block.digest, digest_size=16).digest())
    prefix.labels.append(label)
    ends.append(end + count)
    if block.mark is not None:
        prefix.marks.append((len(chains), block.mark))

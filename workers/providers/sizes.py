"""How large an answer of so many tokens can be: what is larger was not made by a model within what it was allowed."""

from __future__ import annotations

import re

LONGEST_TOKEN = 128
"""Bytes: a run of so many spaces is one token of o200k, its longest, and the tokens of current models are shorter."""
FLOOR_CHARS = 64 * 1024
"""Signatures are no tokens, and a few tokens may carry one."""

BYTES_A_TOKEN = 1024
FLOOR_BYTES = 1024 * 1024
_MAX_TOKENS = re.compile(rb'"max(?:_(?:completion_|output_)?t|T)okens":(\d{1,9})[,}]')
_HEAD = 4096


def most_chars(tokens: int) -> int:
    """Characters (each at least a byte) of text, arguments, reasoning and signatures together."""
    return FLOOR_CHARS + LONGEST_TOKEN * tokens


def most_bytes(tokens: int) -> int:
    """Bytes over the socket: each token may come as an event of its own (some 150 bytes around it), with each of its
    bytes escaped in six, and pings between them."""
    return FLOOR_BYTES + BYTES_A_TOKEN * tokens


def asked_for(body: bytes) -> int | None:
    """The most tokens that a request lets the answer have, by its wire's name for them. Parameters stand first in it,
    and inside a text the quotes would be escaped."""
    found = _MAX_TOKENS.search(body, 0, _HEAD)
    return int(found.group(1)) if found is not None else None

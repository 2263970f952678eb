"""How large an answer of so many tokens can be: what is larger was not made by a model within what it was allowed."""

from __future__ import annotations

LONGEST_TOKEN = 128
"""Bytes: a run of so many spaces is one token of o200k, its longest, and the tokens of current models are shorter."""
FLOOR_CHARS = 64 * 1024
"""Signatures are no tokens, and a few tokens may carry one."""


def most_chars(tokens: int) -> int:
    """Characters (each at least a byte) of text, arguments, reasoning and signatures together."""
    return FLOOR_CHARS + LONGEST_TOKEN * tokens

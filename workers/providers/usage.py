"""Owns how a provider's usage becomes disjoint buckets. Invariant: what cannot be right is None with a note."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from workers.providers.replies import Usage
from workers.providers.sizes import most_chars

ABSURD = 100_000_000
"""Tokens of one bucket of one call; the largest window known is 1,000,000."""


def merge(known: Mapping[str, Any], told: object) -> dict[str, Any]:
    """Later events tell cumulative numbers, and null for what they do not tell again."""
    if not isinstance(told, dict):
        return dict(known)
    news = cast("dict[str, Any]", told)
    return {**known, **{name: value for name, value in news.items() if value is not None}}


def buckets(told: Mapping[str, Any], hour_marks: Callable[[], bool]) -> tuple[Usage | None, str | None]:
    """The usage and, where there is none, why.

    Anthropic: `input_tokens` is what stands after the last mark, so the buckets are disjoint as told. Where writes come
    without their split by time to live, they are booked at an hour if the request carried such a mark: the dearer.
    """
    if "input_tokens" not in told or "output_tokens" not in told:
        return None, "usage_missing"
    parts = _object(told, "cache_creation")
    thinking: object = _object(told, "output_tokens_details").get("thinking_tokens")
    raw: tuple[object, ...] = (
        told["input_tokens"],
        told["output_tokens"],
        told.get("cache_read_input_tokens") or 0,
        told.get("cache_creation_input_tokens") or 0,
        parts.get("ephemeral_5m_input_tokens") or 0,
        parts.get("ephemeral_1h_input_tokens") or 0,
        thinking or 0,
    )
    if not all(type(count) is int and 0 <= count < ABSURD for count in raw):
        return None, "usage_absurd"
    fresh, output, read, written, short, hour, reasoning = cast("tuple[int, ...]", raw)
    if parts and written and short + hour != written:
        return None, "usage_absurd"
    if fresh + read + written + short + hour == 0:  # no request is read in no tokens
        return None, "usage_zero"
    if not parts and written:
        short, hour = (0, written) if hour_marks() else (written, 0)
    return Usage(fresh, output, read, short, hour, min(reasoning, output)), None


def doubt(output: int, chars: int, *, spoke: bool) -> str | None:
    """Why an answer of `chars` characters cannot have been written in `output` tokens. A provider that bills nothing
    for what it says would make every cap worthless."""
    if spoke and output == 0:
        return "usage_zero"
    return "usage_too_small" if chars > most_chars(output) else None


def _object(told: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value: object = told.get(name)
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}

"""Owns how inclusive usage becomes the disjoint buckets that `usage.buckets` judges. What is missing stays missing, and
what cannot be comes out negative and is judged absurd there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from workers.providers.loose import object_of


def of_chat(told: object) -> dict[str, Any] | None:
    """`prompt_tokens` holds what was read from the cache and written to it; completion holds reasoning. DeepSeek tells
    its hits beside it, Mistral nothing of them."""
    usage = object_of(told)
    inside, out = object_of(usage.get("prompt_tokens_details")), object_of(usage.get("completion_tokens_details"))
    read = inside.get("cached_tokens")
    if read is None:
        read = usage.get("prompt_cache_hit_tokens")
    return _disjoint(
        usage.get("prompt_tokens"), usage.get("completion_tokens"), read, inside, out.get("reasoning_tokens")
    )


def of_responses(told: object) -> dict[str, Any] | None:
    usage = object_of(told)
    inside, out = object_of(usage.get("input_tokens_details")), object_of(usage.get("output_tokens_details"))
    prompt, output = usage.get("input_tokens"), usage.get("output_tokens")
    return _disjoint(prompt, output, inside.get("cached_tokens"), inside, out.get("reasoning_tokens"))


def _disjoint(
    prompt: object, output: object, read: object, inside: Mapping[str, Any], reasoning: object
) -> dict[str, Any] | None:
    if prompt is None or output is None:
        return None
    written = inside.get("cache_write_tokens") or 0
    long = object_of(inside.get("cache_write_tokens_details")).get("ttl_12h_tokens") or 0
    counts = (prompt, read or 0, written, long)
    if not all(type(count) is int for count in counts):
        return {"input_tokens": "absurd", "output_tokens": output}
    total, hit, new, kept = cast("tuple[int, int, int, int]", counts)
    return {
        "input_tokens": total - hit - new,
        "output_tokens": output,
        "cache_read_input_tokens": hit,
        "cache_creation_input_tokens": new,
        "cache_creation": {"ephemeral_5m_input_tokens": new - kept, "ephemeral_1h_input_tokens": kept} if new else {},
        "output_tokens_details": {"thinking_tokens": reasoning or 0},
    }

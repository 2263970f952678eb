"""The product's ledger beside the provider's own: every kind of token and the dollars, over all calls of a stack, those
of children, summaries and pings included."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import httpx

BUCKETS = ("input", "cache_read", "cache_write_5m", "cache_write_1h", "output")
Sums = Mapping[str, float]


def ours(http: httpx.Client) -> tuple[Sums, Mapping[str, int]]:
    """What `ledger` says in all, and how many calls of each purpose are in it."""
    found: dict[str, Any] = http.get("/v1/ledger", params={"by": "purpose"}).raise_for_status().json()
    total = found["total"]
    sums = {**total["tokens"], **total, "usd": total["known_usd"]}
    kept = {name: sums[name] for name in (*BUCKETS, "usd", "unknown_calls", "assumed_calls")}
    return kept, {row["key"]: row["calls"] for row in found["items"]}


def theirs(calls: Sequence[Mapping[str, Any]]) -> Sums:
    """What the provider has billed: of calls that it answered, as far as it did."""
    billed = [call for call in calls if call["usd"] is not None]
    return {name: sum(call[name] for call in billed) for name in (*BUCKETS, "usd")}


def differ(before: Sums, after: Sums, billed: Sums) -> list[str]:
    """Each kind of token that differs at all, dollars by a hundredth of a cent; and what is unknown or assumed."""
    found: list[str] = []
    for name in (*BUCKETS, "usd"):
        gone = after[name] - before[name] - billed[name]
        if abs(gone) > (0.0001 if name == "usd" else 0):
            found.append(f"{name}: {after[name] - before[name]:,} here, {billed[name]:,} there")
    doubts = {name: after[name] - before[name] for name in ("unknown_calls", "assumed_calls")}
    return [*found, *(f"{name}: {count:g}" for name, count in doubts.items() if count)]

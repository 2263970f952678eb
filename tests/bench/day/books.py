"""The product's ledger beside the provider's own: every kind of token and the dollars, over all calls of a stack, those
of children, summaries and pings included."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx

BUCKETS = ("input", "cache_read", "cache_write_5m", "cache_write_1h", "output")
Sums = Mapping[str, float]
NOBODY = "nobody"
NONE: Sums = dict.fromkeys((*BUCKETS, "usd", "calls", "unknown_calls", "assumed_calls"), 0)


@dataclass(frozen=True, slots=True)
class Books:
    """What `ledger` says in all, and of each purpose with the number of its calls."""

    total: Sums
    purposes: Mapping[str, Sums]


@dataclass(frozen=True, slots=True)
class Apart:
    """One purpose: what `ledger` says, what the provider has billed for the same calls, and where the two differ."""

    purpose: str
    here: Sums
    there: Sums
    wrong: list[str]

    def __str__(self) -> str:
        kinds = ", ".join(f"{name} {self.here[name]:,.0f}" for name in BUCKETS if self.here[name])
        usd = f"${self.here['usd']:.4f} here, ${self.there['usd']:.4f} there"
        return f"{self.here['calls']:.0f} {self.purpose}: {kinds or 'nothing'}; {usd}"


def ours(http: httpx.Client) -> Books:
    found: dict[str, Any] = http.get("/v1/ledger", params={"by": "purpose"}).raise_for_status().json()
    return Books(_kept(found["total"]), {row["key"]: _kept(row) for row in found["items"]})


def _kept(row: Mapping[str, Any]) -> Sums:
    sums = {**row["tokens"], **row, "usd": row["known_usd"]}
    return {name: sums[name] for name in (*BUCKETS, "usd", "calls", "unknown_calls", "assumed_calls")}


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


def apart(before: Books, after: Books, calls: Sequence[Mapping[str, Any]], known: Mapping[str, str]) -> list[Apart]:
    """The same for each purpose by itself. Only we know what a call was for: `known` has it by the name that the
    provider gave its answer; a call of the provider's that nobody here knows is of purpose `nobody`."""
    billed = [call for call in calls if call["usd"] is not None]
    of = {call["request_id"]: known.get(call["request_id"], NOBODY) for call in billed}
    found: list[Apart] = []
    for purpose in sorted({*after.purposes, *of.values()}):
        told = theirs([call for call in billed if of[call["request_id"]] == purpose])
        then, now = (books.purposes.get(purpose, NONE) for books in (before, after))
        found.append(Apart(purpose, {name: now[name] - then[name] for name in now}, told, differ(then, now, told)))
    return found

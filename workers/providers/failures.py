"""Owns what is done about a call that failed. Pure: an error goes in, a Recovery comes out, and the loop acts.

Invariant: nothing is retried that the provider will refuse again, and nothing is retried for ever. The table is
`kinds`; whoever acts reads booleans and never looks at the error again.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from shared.errors import ProviderError
from workers.providers import kinds
from workers.providers.faults import CallCut, CallFailed
from workers.providers.kinds import Do, Row

IN_PLACE_S = 5.0
"""A longer wait parks the turn, so that it holds no slot."""
IN_PLACE_TRIES = 4
TRIES = 16
"""With the waits below about an hour of an outage."""
LONGEST_ASKED_S = 3_600.0
"""A longer `retry-after` is not believed; the next try asks again."""


@dataclass(frozen=True, slots=True)
class Recovery:
    """What is done about a failure, each word as in `kinds.Do`. `code` and `why` are what a person is told, `wait_s` is
    what the provider asked for, None where it left that to us. `fatal`: here it will not succeed before somebody
    changes something; another model (`fall_back`) or key (`rotate_credential`) may do."""

    code: str
    why: str
    kind: str = "unknown"
    retry: bool = False
    wait_s: float | None = None
    park: bool = False
    compress: bool = False
    spill: bool = False
    refresh: bool = False
    rotate_credential: bool = False
    fall_back: bool = False
    fatal: bool = False
    cools: bool = False
    rests: bool = False
    drop_reasoning: bool = False


@dataclass(frozen=True, slots=True)
class RetryHere:
    wait_s: float


@dataclass(frozen=True, slots=True)
class ParkBackoff:
    wait_s: float


@dataclass(frozen=True, slots=True)
class GiveUp:
    pass


NextMove = RetryHere | ParkBackoff | GiveUp

CONTEXT_OVERFLOW = "context_overflow"
"""The code of a call, or of a turn, whose conversation no longer fits the model's window."""

REASONING_REFUSED = "reasoning_refused"
"""A 400 about the signature of a thinking block: its prefix, key or model is another now. Sent without it, the call
goes through. Source: Anthropic, preserved thinking (the text of the error)."""


def classify(error: ProviderError) -> Recovery:
    """What to do about an error of the wire: from status, code, words, headers and where in the answer it came."""
    if isinstance(error, CallCut):
        return Recovery("call_cut", error.message)
    if not isinstance(error, CallFailed):
        return Recovery(error.code, error.message, fatal=True)
    if error.http_status is None:
        row = next((one for one in kinds.OF_WIRE if error.code in one.own), kinds.UNKNOWN)
        return _made(row, error, f"{error.message}: {row.advice}" if row.advice else error.message)
    status = error.http_status
    if status == 200:
        status = kinds.WITHIN.get(error.kind or "", kinds.WITHIN.get(error.code, 500))
    words = f"{error.kind} {error.code} {error.said}".lower()
    row = next((one for one in kinds.ANSWERED if _fits(one, error, status, words)), None)
    if row is None:
        row = kinds.SERVER if status >= 500 else kinds.UNKNOWN
    return _made(row, error, row.says or f"{error.message} ({row.advice})")


def next_move(recovery: Recovery, tries: int, rng: random.Random) -> NextMove:
    """After `tries` failed calls in a row: again here, again later with the slot given back, or not again."""
    if not recovery.retry or tries >= TRIES:
        return GiveUp()
    wait_s = backoff_s(tries, rng)
    if recovery.wait_s is not None:  # never earlier than asked; the jitter on top keeps a fleet from coming back as one
        wait_s = recovery.wait_s + min(wait_s, 1.0) * rng.random()
    if wait_s <= IN_PLACE_S and tries <= IN_PLACE_TRIES:
        return RetryHere(wait_s)
    return ParkBackoff(wait_s) if recovery.park else GiveUp()


def backoff_s(tries: int, rng: random.Random) -> float:
    """Seconds before the next try: doubling from half a second to fifteen minutes, each drawn from its upper half."""
    return min(0.5 * 2.0 ** (min(max(tries, 1), 20) - 1), 900.0) * (0.5 + rng.random() / 2)


def _fits(row: Row, error: CallFailed, status: int, words: str) -> bool:
    return (
        status in row.statuses
        and (row.asked is None or row.asked is (error.retry_after_s is not None))
        and (row.within is None or row.within is error.partial.began)
        and (row.upstream is None or row.upstream is error.upstream)
        and (row.pattern is None or row.pattern.search(words) is not None)
    )


def _made(row: Row, error: CallFailed, why: str) -> Recovery:
    do: Do = row.do
    asked = None if error.retry_after_s is None else min(error.retry_after_s, LONGEST_ASKED_S)
    mends = do.retry or do.compress or do.spill
    return Recovery(
        row.code or error.code, why, row.kind, retry=do.retry, wait_s=asked if do.retry or do.cools else None,
        park=do.park, compress=do.compress, spill=do.spill, refresh=do.refresh,
        rotate_credential=do.rotate_credential, fall_back=do.fall_back, fatal=not mends, cools=do.cools,
        rests=do.rests, drop_reasoning=do.drop_reasoning,
    )  # fmt: skip

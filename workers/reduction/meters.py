"""What carrying old text has cost and what a cache entry's life is worth: columns of the session, moved by each call.
Pure; all prices relative to input (economics.md "In between, a meter decides").
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from math import ceil, floor

from shared.request.marked import Ttl
from workers.providers.prices import Relative
from workers.providers.replies import Usage
from workers.reduction.sizes import Sizes
from workers.reduction.state import Context

HALF_LIFE = 15
"""Calls after which a holding cost has moved half the way to what it is now."""
PING_EARLY_S = 10.0
WORTH_KEEPING = 0.8
LEAST_PROMPT = 30_000
"""A new session is about to be that large: its time to live is not chosen by its first words."""
_STEP = 1 - 0.5 ** (1 / HALF_LIFE)


ASSUMED = Relative(read=0.1, write_5m=1.25, write_1h=2.0, output=5.0)
"""Of a model whose prices are not known: what most models have (reference/providers.md 1)."""


def write(prices: Relative, ttl: Ttl) -> float:
    return prices.write_5m if ttl is Ttl.MINUTES else prices.write_1h


@dataclass(frozen=True, slots=True)
class Gap:
    """Since the last call of the conversation went out. `seconds` is None where there was none; `cold`: the provider no
    longer keeps what it read then."""

    seconds: float | None
    cold: bool


def gap(context: Context, now: datetime) -> Gap:
    """By the database's clock."""
    warm = context.prefix_warm_until is not None and now < context.prefix_warm_until
    seconds = None if context.called_at is None else max(0.0, (now - context.called_at).total_seconds())
    return Gap(seconds, cold=not warm)


def carried(context: Context, prices: Relative, since: Gap, sizes: Sizes) -> Context:
    """Before a call: what it will carry is added to the meters while the prefix is warm, and the gap to what holding an
    entry costs. Once a call, however often it is tried."""
    pings = context.warm_pings
    meter, compact = context.meter, context.compact_meter
    if not since.cold:
        meter += prices.read * (sizes.drop + pings * context.junk_tokens)
        compact += (1 + pings) * prices.read * max(sizes.middle - sizes.drop, 0)
    moved = replace(context, meter=meter, compact_meter=compact, junk_tokens=sizes.drop, warm_pings=0)
    if since.seconds is None:
        return moved
    return replace(
        moved,
        hold_5m=_toward(context.hold_5m, holding(Ttl.MINUTES, since.seconds, prices)),
        hold_1h=_toward(context.hold_1h, holding(Ttl.HOUR, since.seconds, prices)),
    )


def holding(ttl: Ttl, seconds: float, prices: Relative) -> float:
    """What a token of the prefix costs over a gap: nothing while its entry lives, else the pings that keep it alive,
    or the write that replaces it, whichever is less."""
    if seconds < ttl.seconds:
        return 0.0
    pings = floor(seconds / (ttl.seconds - PING_EARLY_S))
    return min(pings * prices.read, write(prices, ttl) - prices.read)


def most_pings(prices: Relative, ttl: Ttl) -> int:
    """How many reads just before an entry expires cost less than 0.8 of the write that they avoid."""
    return max(0, ceil(WORTH_KEEPING * (write(prices, ttl) - prices.read) / prices.read) - 1)


def worth_pinging(context: Context, prices: Relative, prompt: int) -> int:
    """`most_pings` of the session's own time to live; none where the other one would cost less: an entry of five
    minutes is not kept alive for an hour at the price of twelve reads, it becomes one of an hour when next it is
    written."""
    return most_pings(prices, context.ttl) if context.ttl is best_ttl(context, prices, prompt) else 0


def best_ttl(context: Context, prices: Relative, prompt: int) -> Ttl:
    """The time to live that costs less, holding and writing together; the shorter one where they are equal."""
    size = max(prompt, LEAST_PROMPT)
    short = context.hold_5m * size + prices.write_5m * context.wrote_tokens
    long = context.hold_1h * size + prices.write_1h * context.wrote_tokens
    return Ttl.HOUR if long < short else Ttl.MINUTES


def answered(context: Context, usage: Usage | None, *, warm: bool) -> Context:
    """After a call: what a call of this session writes. A prefix that was lost is no measure of that."""
    if usage is None or not warm:
        return context
    wrote = usage.cache_write_5m + usage.cache_write_1h
    return replace(context, wrote_tokens=_toward(context.wrote_tokens, wrote))


def pruned(context: Context, *, before: int, after: int, trigger: int) -> Context:
    """After a prune: the meter begins anew, and while warm the next one waits until the prompt has grown again by what
    was taken, and no less than `trigger` (tokens)."""
    return replace(context, meter=0.0, junk_tokens=0, regrow_to=runway(before, after, trigger))


def runway(before: int, after: int, trigger: int) -> int:
    return after + max(before - after, trigger)


def _toward(old: float, new: float) -> float:
    return old + (new - old) * _STEP

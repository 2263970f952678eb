"""What to do about a prompt before its next call: nothing, another time to live, stubs, or a summary. Pure.

Source: economics.md "In between, a meter decides": the classic rent-or-buy rule, no forecast. The names in brackets are
the ones of that page.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from shared.request.marked import Ttl
from workers.providers.prices import Relative
from workers.reduction import meters
from workers.reduction.meters import Gap
from workers.reduction.sizes import SUMMARY, Sizes
from workers.reduction.state import Context

COLD_LEAST = 2_000
WARM_LEAST = 4_000
"""Tokens that a prune takes out at least: where the prefix is lost anyway, and where it is not."""
COMPACT_LEAST = 20_000
FULL = 0.8
"""Of the price of a prune: so much carried, and it is bought."""
TIGHT = 0.85
"""Of the threshold: what would still be above it after a prune needs a summary."""
MICRO, IDLE = "micro", "idle"
"""Causes of the two summaries that nothing presses for; both are off until a person turns them on."""
LOST_DETAIL = 100_000
"""What a summary forgets, in tokens of input: it keeps summaries rare."""
REFETCH = 0.02
"""The share of stubs that are asked for again, each by a call of its own; assumed, not measured."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What a person may turn off."""

    prune_cold: bool = True
    prune_warm: bool = True
    compact_by_meter: bool = True
    compact_at_threshold: bool = True
    micro: bool = False
    """A turn has ended, and the oldest exchange may be folded in."""
    idle: int | None = None
    """Nobody has spoken for long: from so many tokens on the conversation is summarised, warm or cold."""


@dataclass(frozen=True, slots=True)
class Keep:
    """Nothing changes."""


@dataclass(frozen=True, slots=True)
class SetTtl:
    """Only how long the provider is asked to keep what is written from now on."""

    ttl: Ttl


@dataclass(frozen=True, slots=True)
class Prune:
    cause: str
    ttl: Ttl


@dataclass(frozen=True, slots=True)
class Compact:
    cause: str
    ttl: Ttl


Decision = Keep | SetTtl | Prune | Compact
ALL = Rules()


def decide(state: Context, prices: Relative, gap: Gap, sizes: Sizes, rules: Rules = ALL) -> Decision:
    """What to do before the next call, its share already in the meters (`meters.carried`)."""
    best = meters.best_ttl(state, prices, sizes.prompt)
    ttl = state.ttl if best is Ttl.HOUR and not gap.cold else best  # up to an hour only where nothing is warm to keep
    over = sizes.prompt >= sizes.room
    if rules.idle is not None and sizes.prompt >= rules.idle and sizes.middle > COMPACT_LEAST:
        found = "compact", IDLE
    elif gap.cold:
        found = _cold(sizes, rules)
    elif rules.compact_by_meter and sizes.middle > COMPACT_LEAST and _due(state, prices, sizes):
        found = "compact", "meter"
    elif over:
        found = _over(sizes, rules)
    elif _may_prune_warm(state, sizes, rules) and paid_for(state, prices, sizes):
        found = "prune", "meter"
    elif rules.micro and sizes.middle >= WARM_LEAST and sizes.prompt >= state.regrow_to:
        found = "compact", MICRO
    else:
        found = None
    match found:
        case "prune", cause:
            return Prune(cause, ttl)
        case "compact", cause:
            return Compact(cause, best)
        case _:
            return SetTtl(ttl) if ttl is not state.ttl else Keep()


def paid_for(state: Context, prices: Relative, sizes: Sizes) -> bool:
    """Whether carrying what a prune would take out has cost nearly as much as the prune."""
    return state.meter >= FULL * edit_price(state, prices, sizes)


def edit_price(state: Context, prices: Relative, sizes: Sizes) -> float:
    """What a prune costs once: all behind the first new stub is written instead of read, less what is no longer
    carried; and some of it will be asked for again."""
    each = sizes.drop / sizes.stubs if sizes.stubs else 0.0
    write = meters.write(prices, state.ttl)
    again = REFETCH * sizes.stubs * (prices.read * sizes.prompt + write * each)
    return (write - prices.read) * sizes.behind - prices.read * sizes.drop + again


def compact_price(state: Context, prices: Relative, sizes: Sizes) -> float:
    """What a summary costs once: the summariser reads the warm prompt and writes, all behind the head is written again,
    and detail is lost."""
    summariser = prices.read * sizes.prompt + prices.output * SUMMARY
    return summariser + (meters.write(prices, state.ttl) - prices.read) * sizes.middle_behind + LOST_DETAIL


def arithmetic(state: Context, prices: Relative, gap: Gap, sizes: Sizes) -> dict[str, Any]:
    """What a decision was made of, for the row and the event that tell of it."""
    return {
        **asdict(sizes), "r": prices.read, "w": meters.write(prices, state.ttl), "ttl": state.ttl,
        "gap_s": None if gap.seconds is None else round(gap.seconds, 1), "cold": gap.cold,
        "meter": round(state.meter), "edit_price": round(edit_price(state, prices, sizes)),
        "compact_meter": round(state.compact_meter), "compact_price": round(compact_price(state, prices, sizes)),
        "hold_5m": round(state.hold_5m, 4), "hold_1h": round(state.hold_1h, 4),
        "wrote_tokens": round(state.wrote_tokens), "regrow_to": state.regrow_to,
    }  # fmt: skip


def _cold(sizes: Sizes, rules: Rules) -> tuple[str, str] | None:
    if sizes.prompt - sizes.drop >= sizes.room and rules.compact_at_threshold:
        return "compact", "threshold"
    return ("prune", "cold") if rules.prune_cold and sizes.drop >= COLD_LEAST else None


def _over(sizes: Sizes, rules: Rules) -> tuple[str, str] | None:
    """At the threshold: a prune where it makes room enough, and takes out what a warm one must."""
    enough = sizes.prompt - sizes.drop < TIGHT * sizes.room and sizes.drop >= WARM_LEAST
    if enough and rules.prune_warm:
        return "prune", "threshold"
    return ("compact", "threshold") if rules.compact_at_threshold else None


def _may_prune_warm(state: Context, sizes: Sizes, rules: Rules) -> bool:
    return rules.prune_warm and sizes.drop >= WARM_LEAST and sizes.prompt >= state.regrow_to


def _due(state: Context, prices: Relative, sizes: Sizes) -> bool:
    return state.compact_meter >= compact_price(state, prices, sizes)

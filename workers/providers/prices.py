"""Owns dollars, at the rates that the settings name, else those of genai-prices. Invariant: a bucket with tokens and no
known rate makes the cost unknown.

The sum is ours, because the package's own takes 150 µs and a step needs five of them (a test holds the two equal).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from shared.providers.table import ANTHROPIC
from shared.rates import MILLION, NONE, VERSION, Own, Rate, Rates, at_size, caches_by_itself, of_model
from shared.request.marked import Ttl
from workers.providers.replies import Usage


@dataclass(frozen=True, slots=True)
class Cost:
    """`usd` is None where a rate is not known; `source` says where the rates came from, or what was missing."""

    usd: Decimal | None
    source: str


def price(model: str, usage: Usage | None, at: datetime, *, provider: str = ANTHROPIC.name, own: Own = NONE) -> Cost:
    """What a call cost, by the rates in force at `at` (aware) at that provider (its name with us)."""
    if usage is None:
        return Cost(None, "the provider told no usage")
    rates = of_model(model, at, provider, own)
    if rates is None:
        return Cost(None, f"genai-prices {VERSION} does not know {model} at {provider}")
    usd = Decimal(0)
    for name, tokens, rate in _buckets(rates, usage):
        if not tokens:
            continue
        if rate is None:
            return Cost(None, f"{rates.source} has no rate of {name} for {model}")
        usd += at_size(rate, usage.prompt) * tokens
    return Cost(usd / MILLION, f"{rates.source} {provider} {at:%Y-%m-%d}")


def worst(
    model: str,
    prompt_tokens: int,
    max_tokens: int,
    *,
    at: datetime,
    ttl: Ttl = Ttl.HOUR,
    provider: str = ANTHROPIC.name,
    own: Own = NONE,
) -> Decimal | None:
    """The most that a call can cost: its whole prompt in the dearest bucket that its marks can fill, and all the output
    it asked for. Rates that rise with the prompt are taken at its size. None where a rate that may apply is missing."""
    rates = of_model(model, at, provider, own)
    if rates is None or rates.input is None:
        return None
    hour = [rates.cache_write_1h] if ttl is Ttl.HOUR else []
    buckets = [rates.input, rates.cache_read, rates.cache_write_5m, *hour]
    if caches_by_itself(model, provider):  # what it has no rate for, it does not bill
        buckets = [rate for rate in buckets if rate is not None]
    known = [at_size(rate, prompt_tokens) for rate in buckets if rate is not None]
    if len(known) < len(buckets) or rates.output is None:
        return None
    return (max(known) * prompt_tokens + at_size(rates.output, prompt_tokens) * max_tokens) / MILLION


@dataclass(frozen=True, slots=True)
class Relative:
    """What a token of each bucket costs where one of input costs 1."""

    read: float
    write_5m: float
    write_1h: float
    output: float


def relative(
    model: str, prompt_tokens: int, at: datetime, *, provider: str = ANTHROPIC.name, own: Own = NONE
) -> Relative | None:
    """The model's prices by its own price of input, for a prompt of that size. None where one of them is not known."""
    rates = of_model(model, at, provider, own)
    if rates is None:
        return None
    short, hour = rates.cache_write_5m, rates.cache_write_1h
    if caches_by_itself(model, provider):  # without a fee for writing, what is written costs what reading it first does
        short = short if short is not None else rates.input
        hour = hour if hour is not None else short
    each = (rates.input, rates.cache_read, short, hour, rates.output)
    found = [float(at_size(rate, prompt_tokens)) for rate in each if rate is not None]
    if len(found) < len(each) or not found[0]:
        return None
    given, *others = found
    return Relative(*(one / given for one in others))


def _buckets(rates: Rates, usage: Usage) -> tuple[tuple[str, int, Rate], ...]:
    return (
        ("input", usage.input, rates.input),
        ("output", usage.output, rates.output),
        ("cache_read", usage.cache_read, rates.cache_read),
        ("cache_write_5m", usage.cache_write_5m, rates.cache_write_5m),
        ("cache_write_1h", usage.cache_write_1h, rates.cache_write_1h),
    )

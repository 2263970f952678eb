"""Owns dollars, at the rates that the settings name, else those of genai-prices. Invariant: a bucket with tokens and no
known rate makes the cost unknown.

The sum is ours, because the package's own takes 150 µs and a step needs five of them (a test holds the two equal).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from importlib.metadata import version

import genai_prices
from genai_prices.types import TieredPrices

from shared.prices import OwnPrice
from shared.providers.table import ANTHROPIC, known
from shared.request.cache_plan import Shape
from shared.request.marked import Ttl
from workers.providers.replies import Usage

VERSION = version("genai-prices")
Own = Mapping[str, Mapping[str, OwnPrice]]
"""What the settings say, by provider and model."""
NONE: Own = {}
SETTINGS = "settings"
"""Where a rate is said to come from that the team wrote down itself."""
_MILLION = Decimal(1_000_000)

Rate = Decimal | TieredPrices | None
"""Dollars a million tokens; tiered: one price for all tokens of a request, by the size of its prompt."""


@dataclass(frozen=True, slots=True)
class Cost:
    """`usd` is None where a rate is not known; `source` says where the rates came from, or what was missing."""

    usd: Decimal | None
    source: str


@dataclass(frozen=True, slots=True)
class _Rates:
    input: Rate
    output: Rate
    cache_read: Rate
    cache_write_5m: Rate
    cache_write_1h: Rate
    source: str


def price(model: str, usage: Usage | None, at: datetime, *, provider: str = ANTHROPIC.name, own: Own = NONE) -> Cost:
    """What a call cost, by the rates in force at `at` (aware) at that provider (its name with us)."""
    if usage is None:
        return Cost(None, "the provider told no usage")
    rates = _rates(model, at, provider, own)
    if rates is None:
        return Cost(None, f"genai-prices {VERSION} does not know {model} at {provider}")
    usd = Decimal(0)
    for name, tokens, rate in _buckets(rates, usage):
        if not tokens:
            continue
        if rate is None:
            return Cost(None, f"{rates.source} has no rate of {name} for {model}")
        usd += _at_size(rate, usage.prompt) * tokens
    return Cost(usd / _MILLION, f"{rates.source} {provider} {at:%Y-%m-%d}")


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
    rates = _rates(model, at, provider, own)
    if rates is None or rates.input is None:
        return None
    hour = [rates.cache_write_1h] if ttl is Ttl.HOUR else []
    buckets = [rates.input, rates.cache_read, rates.cache_write_5m, *hour]
    if _caches_by_itself(model, provider):  # what it has no rate for, it does not bill
        buckets = [rate for rate in buckets if rate is not None]
    known = [_at_size(rate, prompt_tokens) for rate in buckets if rate is not None]
    if len(known) < len(buckets) or rates.output is None:
        return None
    return (max(known) * prompt_tokens + _at_size(rates.output, prompt_tokens) * max_tokens) / _MILLION


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
    rates = _rates(model, at, provider, own)
    if rates is None:
        return None
    short, hour = rates.cache_write_5m, rates.cache_write_1h
    if _caches_by_itself(
        model, provider
    ):  # without a fee for writing, what is written costs what it costs to read it first
        short = short if short is not None else rates.input
        hour = hour if hour is not None else short
    of_model = (rates.input, rates.cache_read, short, hour, rates.output)
    found = [float(_at_size(rate, prompt_tokens)) for rate in of_model if rate is not None]
    if len(found) < len(of_model) or not found[0]:
        return None
    given, *others = found
    return Relative(*(one / given for one in others))


def _buckets(rates: _Rates, usage: Usage) -> tuple[tuple[str, int, Rate], ...]:
    return (
        ("input", usage.input, rates.input),
        ("output", usage.output, rates.output),
        ("cache_read", usage.cache_read, rates.cache_read),
        ("cache_write_5m", usage.cache_write_5m, rates.cache_write_5m),
        ("cache_write_1h", usage.cache_write_1h, rates.cache_write_1h),
    )


def _at_size(rate: Decimal | TieredPrices, prompt_tokens: int) -> Decimal:
    if isinstance(rate, Decimal):
        return rate
    above = [tier.price for tier in rate.tiers if prompt_tokens > tier.start]
    return above[-1] if above else rate.base


def _caches_by_itself(model: str, provider: str) -> bool:
    """Whether the provider decides alone what it caches: there are no marks whose price would be due."""
    found = known(provider)
    return found is not None and found.of_model(model).route.shape is not Shape.NATIVE


def _rates(model: str, at: datetime, provider: str, own: Own) -> _Rates | None:
    """What the settings name goes before the list; None where neither knows anything of the model there."""
    listed, ours = _listed(model, at, provider), _own(model, provider, own)
    if ours is None:
        return listed
    named = {bucket: rate for bucket, rate in ours if rate is not None}
    if listed is None:
        return _Rates(**(dict.fromkeys(OwnPrice.model_fields) | named), source=SETTINGS)
    complete = len(named) == len(OwnPrice.model_fields)
    return replace(listed, **named, source=SETTINGS if complete else f"{SETTINGS}, {listed.source}")


def _own(model: str, provider: str, own: Own) -> OwnPrice | None:
    """Of two of a kind, the one's own; else what is written down for the kind, as the list's prices are of the kind."""
    found = own.get(provider, {}).get(model)
    kind = known(provider)
    return found if found is not None or kind is None else own.get(kind.name, {}).get(model)


def _listed(model: str, at: datetime, provider: str) -> _Rates | None:
    found = known(provider)
    if found is None or found.prices is None:  # a model of the same name elsewhere has another price
        return None
    return _rates_of_minute(model, found.prices, at.replace(second=0, microsecond=0))


@lru_cache(maxsize=512)
def _rates_of_minute(model: str, provider: str, at: datetime) -> _Rates | None:
    """Rates can change by the date and by the time of day; within a minute they do not."""
    nothing = genai_prices.Usage(input_tokens=0, output_tokens=0)
    try:
        found = genai_prices.calc_price(nothing, model, provider_id=provider, genai_request_timestamp=at).model_price
    except LookupError:
        return None
    return _Rates(
        found.input_mtok, found.output_mtok, found.cache_read_mtok, found.cache_write_mtok, found.cache_write_1h_mtok,
        f"genai-prices {VERSION}",
    )  # fmt: skip

"""Owns what a token costs: the rates that the settings name, else those of genai-prices. Pure, for every room.

What a sum of them is made of is the workers' (`workers.providers.prices`); the API tells a price before it is paid.
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
from shared.providers.table import known
from shared.request.cache_plan import Shape

VERSION = version("genai-prices")
Own = Mapping[str, Mapping[str, OwnPrice]]
"""What the settings say, by provider and model."""
NONE: Own = {}
SETTINGS = "settings"
"""Where a rate is said to come from that the team wrote down itself."""
MILLION = Decimal(1_000_000)

Rate = Decimal | TieredPrices | None
"""Dollars a million tokens; tiered: one price for all tokens of a request, by the size of its prompt."""


@dataclass(frozen=True, slots=True)
class Rates:
    input: Rate
    output: Rate
    cache_read: Rate
    cache_write_5m: Rate
    cache_write_1h: Rate
    source: str


def anew(model: str, tokens: int, at: datetime, *, provider: str, marks: bool, own: Own = NONE) -> Decimal | None:
    """Dollars for a prompt of which the provider has nothing in its cache: written to it, where marks tell it to. None
    where the rate is not known."""
    found = of_model(model, at, provider, own)
    return None if found is None else _dollars(found.cache_write_5m if marks else found.input, tokens)


def kept(model: str, tokens: int, at: datetime, *, provider: str, own: Own = NONE) -> Decimal | None:
    """Dollars for a prompt that the provider has in its cache. None where the rate is not known."""
    found = of_model(model, at, provider, own)
    return None if found is None else _dollars(found.cache_read, tokens)


def _dollars(rate: Rate, tokens: int) -> Decimal | None:
    if not tokens:
        return Decimal(0)
    return None if rate is None else at_size(rate, tokens) * tokens / MILLION


def at_size(rate: Decimal | TieredPrices, prompt_tokens: int) -> Decimal:
    if isinstance(rate, Decimal):
        return rate
    above = [tier.price for tier in rate.tiers if prompt_tokens > tier.start]
    return above[-1] if above else rate.base


def caches_by_itself(model: str, provider: str) -> bool:
    """Whether the provider decides alone what it caches: there are no marks whose price would be due."""
    found = known(provider)
    return found is not None and found.of_model(model).route.shape is not Shape.NATIVE


def of_model(model: str, at: datetime, provider: str, own: Own) -> Rates | None:
    """What the settings name goes before the list; None where neither knows anything of the model there."""
    listed, ours = _listed(model, at, provider), _own(model, provider, own)
    if ours is None:
        return listed
    named = {bucket: rate for bucket, rate in ours if rate is not None}
    if listed is None:
        return Rates(**(dict.fromkeys(OwnPrice.model_fields) | named), source=SETTINGS)
    complete = len(named) == len(OwnPrice.model_fields)
    return replace(listed, **named, source=SETTINGS if complete else f"{SETTINGS}, {listed.source}")


def _own(model: str, provider: str, own: Own) -> OwnPrice | None:
    """Of two of a kind, the one's own; else what is written down for the kind, as the list's prices are of the kind."""
    found = own.get(provider, {}).get(model)
    kind = known(provider)
    return found if found is not None or kind is None else own.get(kind.name, {}).get(model)


def _listed(model: str, at: datetime, provider: str) -> Rates | None:
    found = known(provider)
    if found is None or found.prices is None:  # a model of the same name elsewhere has another price
        return None
    return _rates_of_minute(model, found.prices, at.replace(second=0, microsecond=0))


@lru_cache(maxsize=512)
def _rates_of_minute(model: str, provider: str, at: datetime) -> Rates | None:
    """Rates can change by the date and by the time of day; within a minute they do not."""
    nothing = genai_prices.Usage(input_tokens=0, output_tokens=0)
    try:
        found = genai_prices.calc_price(nothing, model, provider_id=provider, genai_request_timestamp=at).model_price
    except LookupError:
        return None
    return Rates(
        found.input_mtok, found.output_mtok, found.cache_read_mtok, found.cache_write_mtok, found.cache_write_1h_mtok,
        f"genai-prices {VERSION}",
    )  # fmt: skip

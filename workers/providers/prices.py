"""Owns dollars, by genai-prices. Invariant: a bucket with tokens and no known rate makes the whole cost unknown."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from importlib.metadata import version
from typing import Literal

import genai_prices
from genai_prices.types import ModelPrice

from workers.providers.replies import Usage

PROVIDER = "anthropic"
VERSION = version("genai-prices")


@dataclass(frozen=True, slots=True)
class Cost:
    """`usd` is None where a rate is not known; `source` says where the rates came from, or what was missing."""

    usd: Decimal | None
    source: str


def price(model: str, usage: Usage | None, at: datetime) -> Cost:
    """What a call cost, by the rates in force at `at` (aware)."""
    if usage is None:
        return Cost(None, "the provider told no usage")
    rates = _rates(model, at)
    if rates is None:
        return Cost(None, f"genai-prices {VERSION} does not know {model}")
    missing = [name for name, tokens in _by_rate(usage) if tokens and getattr(rates, name) is None]
    if missing:
        return Cost(None, f"genai-prices {VERSION} has no {', '.join(missing)} for {model}")
    return Cost(_dollars(rates, usage), f"genai-prices {VERSION} {PROVIDER} {at:%Y-%m-%d}")


def worst(
    model: str, prompt_tokens: int, max_tokens: int, *, at: datetime, ttl: Literal["5m", "1h"] = "1h"
) -> Decimal | None:
    """The most that a call can cost: its whole prompt in the dearest bucket that its marks can fill, and all the output
    it asked for. Rates that rise with the prompt are taken at its size. None where a rate that may apply is missing."""
    cases = [
        Usage(input=prompt_tokens, output=max_tokens),
        Usage(cache_write_5m=prompt_tokens, output=max_tokens),
        Usage(cache_read=prompt_tokens, output=max_tokens),
    ]
    if ttl == "1h":
        cases.append(Usage(cache_write_1h=prompt_tokens, output=max_tokens))
    known = [cost for cost in (price(model, case, at).usd for case in cases) if cost is not None]
    return max(known) if len(known) == len(cases) else None


def _by_rate(usage: Usage) -> tuple[tuple[str, int], ...]:
    return (
        ("input_mtok", usage.input),
        ("output_mtok", usage.output),
        ("cache_read_mtok", usage.cache_read),
        ("cache_write_mtok", usage.cache_write_5m),
        ("cache_write_1h_mtok", usage.cache_write_1h),
    )


def _dollars(rates: ModelPrice, usage: Usage) -> Decimal:
    inclusive = genai_prices.Usage(
        input_tokens=usage.prompt,
        cache_read_tokens=usage.cache_read,
        cache_write_tokens=usage.cache_write_5m + usage.cache_write_1h,
        cache_write_1h_tokens=usage.cache_write_1h,
        output_tokens=usage.output,
    )
    return rates.calc_price(inclusive)["total_price"]


def _rates(model: str, at: datetime) -> ModelPrice | None:
    return _rates_of_minute(model, at.replace(second=0, microsecond=0))


@lru_cache(maxsize=512)
def _rates_of_minute(model: str, at: datetime) -> ModelPrice | None:
    """Rates can change by the date and by the time of day; within a minute they do not."""
    try:
        return genai_prices.calc_price(
            genai_prices.Usage(input_tokens=0, output_tokens=0), model, provider_id=PROVIDER, genai_request_timestamp=at
        ).model_price
    except LookupError:
        return None

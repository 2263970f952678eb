"""Owns what a call costs that another model has answered than was asked for, as routers, fallbacks of a provider and
deployments with names of their own make them. Pure."""

from __future__ import annotations

import re
from datetime import datetime

from shared.rates import NONE, Own
from workers.providers import prices
from workers.providers.prices import Cost
from workers.providers.replies import Usage

_SNAPSHOT = re.compile(r"-(?:\d{8}|\d{4}-\d{2}-\d{2}|latest)$")


def is_other(asked: str, told: str) -> bool:
    """Whether these are names of two models: neither is the other with its maker, its snapshot or its kind."""
    one, two = (
        _SNAPSHOT.sub("", name.strip().lower().rsplit("/", 1)[-1].removesuffix(".gguf")) for name in (asked, told)
    )
    return not (one.startswith(two) or two.startswith(one)) if one and two else False


def price(asked: str, told: str | None, usage: Usage | None, at: datetime, *, provider: str, own: Own = NONE) -> Cost:
    """By the model that was asked for; where another one says that it answered, and its price is known, by the dearer:
    neither a bill nor a cap may be too small because a provider chose for us. Unknown stays unknown."""
    cost = prices.price(asked, usage, at, provider=provider, own=own)
    if told is None or usage is None or not is_other(asked, told):
        return cost
    other = prices.price(told, usage, at, provider=provider, own=own)
    dearer = other.usd is not None and (cost.usd is None or other.usd > cost.usd)
    return Cost((other if dearer else cost).usd, f"{(other if dearer else cost).source}; {told[:80]} answered")

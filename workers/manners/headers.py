"""Owns how a provider's headers tell its limits. Pure.

Sources: Anthropic, `anthropic-ratelimit-*` with RFC 3339 times; OpenAI and its kind, `x-ratelimit-*` with durations
such as `6m0s` or `20ms`, some servers with seconds or with an epoch in milliseconds (OpenRouter).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from workers.manners.terms import NOT_TOLD, Told, Window

Headers = Sequence[tuple[str, str]]
LONGEST_S = 600.0
"""A limit of a longer window (a day's) is not spread over it: it is used until the provider says that it is used up."""
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}
_REQUESTS = (
    ("anthropic-ratelimit-requests-limit", "anthropic-ratelimit-requests-remaining",
     "anthropic-ratelimit-requests-reset"),
    ("x-ratelimit-limit-requests", "x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"),
    ("x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"),
)  # fmt: skip
_TOKENS = (
    ("anthropic-ratelimit-input-tokens-limit", "anthropic-ratelimit-input-tokens-remaining",
     "anthropic-ratelimit-input-tokens-reset"),
    ("anthropic-ratelimit-tokens-limit", "anthropic-ratelimit-tokens-remaining", "anthropic-ratelimit-tokens-reset"),
    ("x-ratelimit-limit-tokens", "x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"),
)  # fmt: skip


def read(headers: Sequence[tuple[str, str]], now: datetime) -> Told:
    """What the headers of one answer tell, names in small letters; `now` is aware."""
    known = dict(headers)
    if not known:
        return NOT_TOLD
    return Told(_window(known, _REQUESTS, now), _window(known, _TOKENS, now))


def reset_s(headers: Sequence[tuple[str, str]], now: datetime) -> float | None:
    """When what is used up comes back, in seconds, where an answer of 429 does not say so otherwise."""
    told = read(headers, now)
    empty = [one.reset_ms / 1_000 for one in (told.requests, told.tokens) if one is not None and one.left == 0]
    return max((seconds for seconds in empty if seconds > 0), default=None)


def _window(known: Mapping[str, str], names: Sequence[tuple[str, str, str]], now: datetime) -> Window | None:
    for limit_name, left_name, reset_name in names:
        limit = _number(known.get(limit_name))
        if limit is None or limit <= 0:
            continue
        left, reset = _number(known.get(left_name)), _seconds(known.get(reset_name), now)
        used = limit - left if left is not None else 0.0
        if reset is not None and used >= 1 and reset / used * limit > LONGEST_S:
            return None
        return Window(limit, left, (reset or 0.0) * 1_000)
    return None


def _number(told: str | None) -> float | None:
    try:
        found = float(told) if told is not None else math.nan
    except ValueError:
        return None
    return found if math.isfinite(found) and found >= 0 else None


def _seconds(told: str | None, now: datetime) -> float | None:
    """Seconds from now of a time, a duration, or an epoch in milliseconds."""
    if told is None:
        return None
    number = _number(told)
    if number is not None:
        seconds = number / 1_000 - now.timestamp() if number > 1e12 else number
        return max(seconds, 0.0)
    parts = _PART.findall(told)
    if parts and "".join(value + unit for value, unit in parts) == told:
        return sum(float(value) * _UNITS[unit] for value, unit in parts)
    try:
        at = datetime.fromisoformat(told)
    except ValueError:
        return None
    if at.tzinfo is None:
        return None
    whole = timedelta(seconds=0 if at.microsecond or "." in told else 1)  # it is some time in that second
    return max((at + whole - now).total_seconds(), 0.0)

"""Whether a job that succeeds should go on: runs that bring no news, runs that cost more and more. Pure; off unless its
owner says otherwise (decision 34).

Nobody looks at a job that ends well each night. What it says may have been the same for a month, or its price may have
doubled each week: neither is an error, so nothing else stops it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

SLOPE_RUNS = 5
"""So many runs are held against as many before them: one dear night is no slope."""
MOST_RUNS = 100


@dataclass(frozen=True, slots=True)
class Past:
    """A run that ended well: its answer, and what it was charged with its children."""

    answer: str
    usd: Decimal


@dataclass(frozen=True, slots=True)
class Trip:
    code: str
    why: str


def tripped(past: Sequence[Past], same: int | None, dearer: Decimal | None) -> Trip | None:
    """Of the runs since somebody last let the job go on, the newest first."""
    if same is not None and len(past) >= same and len({said(one.answer) for one in past[:same]}) == 1:
        return Trip(
            "job_no_news",
            f"its last {same} runs said the same, which cost ${_sum(past[:same]):.4f}: make it rarer, or let it go on",
        )
    if dearer is None or len(past) < 2 * SLOPE_RUNS:
        return None
    now, before = _sum(past[:SLOPE_RUNS]), _sum(past[SLOPE_RUNS : 2 * SLOPE_RUNS])
    if not before or now < before * dearer:
        return None
    return Trip(
        "job_dearer",
        f"its last {SLOPE_RUNS} runs cost ${now:.4f}, {now / before:.1f} times as much as the {SLOPE_RUNS} before: look"
        " at what they read, give it a cap, or let it go on",
    )


_MOMENT = re.compile(r"\b\d{4}-\d{2}-\d{2}\b|\b\d{1,2}:\d{2}(?::\d{2})?\b")
_SPACE = re.compile(r"\s+")


def said(answer: str) -> str:
    """What is compared: dates and times of day, capitals and white space make no news."""
    return _SPACE.sub(" ", _MOMENT.sub("", answer)).strip().casefold()


def _sum(past: Sequence[Past]) -> Decimal:
    return sum((one.usd for one in past), Decimal(0))

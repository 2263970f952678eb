"""Whether compaction may be tried again: judged by the bill, stopped when it does not help, probed once in a while.
Pure.

Every number here is a column of the session, by the database's clock: a restart neither disarms the breaker nor
postpones its probe (economics.md "The trigger: calibrated, then judged").
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from workers.reduction.state import Context

TRIPS = 2
"""So many compactions in a row that did not help, or that went without the model, stop the automatic ones."""
WINDOW = timedelta(minutes=5)
"""How long the breaker blocks before one probe, and how far apart two attempts stand of which the first was not
proved."""


class Last(StrEnum):
    """What came of the session's last attempt (`sessions.compact_last`)."""

    OPEN = "open"  # begun, and no outcome written: its worker is at it, or gone
    SUMMARY = "summary"  # the model's summary stands
    FALLBACK = "fallback"  # the model failed; what stands was made without it
    DROPPED = "dropped"  # too little to be worth a call; what stands was made without the model
    NOTHING = "nothing"  # nothing could be left out: no edit


@dataclass(frozen=True, slots=True)
class Attempt:
    """The session's last attempt, as its row has it. `at` is None where there was none."""

    at: datetime | None = None
    last: Last | None = None


@dataclass(frozen=True, slots=True)
class Free:
    """It may be tried. `context` holds the counters as they stand from now on: of a probe they dropped to one."""

    context: Context
    probe: bool = False


@dataclass(frozen=True, slots=True)
class Shut:
    """It may not be tried before `until`; `why` is a sentence for a person. `context` has `breaker_blocked_at`."""

    context: Context
    until: datetime
    why: str


def judge(context: Context, billed: int | None, threshold: int) -> Context:
    """The verdict on the last compaction, by the first response after it: `billed` is its whole prompt in tokens (None:
    it told no usage, which spends the verdict and judges nothing), `threshold` the size that started the compaction.
    Nothing changes where no verdict is due."""
    if not context.verdict_due:
        return context
    judged = replace(context, verdict_due=False)
    if billed is None:
        return judged
    judged = replace(judged, ineffective_strikes=judged.ineffective_strikes + 1 if billed >= threshold else 0)
    return judged if tripped(judged) else replace(judged, breaker_blocked_at=None)


def tripped(context: Context) -> bool:
    return context.ineffective_strikes >= TRIPS or context.fallback_streak >= TRIPS


def blocked(context: Context, attempt: Attempt, now: datetime, *, fits: bool) -> Free | Shut:
    """Whether an automatic compaction may be tried at `now`. `fits`: a billed prompt under the threshold has been seen
    since the last one.

    Two rules. Tripped counters block; five minutes after the block was first met, one probe is let through and they
    drop to one. And an attempt that was not proved to help is the only one of its five minutes, also before anything
    has tripped: two ineffective ones in a row would cost twice within a minute.
    """
    if tripped(context):
        since = context.breaker_blocked_at or now
        if now < since + WINDOW:
            return Shut(replace(context, breaker_blocked_at=since), since + WINDOW, _tripped_why(context))
        context = replace(
            context,
            ineffective_strikes=min(context.ineffective_strikes, 1),
            fallback_streak=min(context.fallback_streak, 1),
            breaker_blocked_at=None,
        )
        return Free(context, probe=True)
    if attempt.at is None or now >= attempt.at + WINDOW or _proved(context, attempt, fits=fits):
        return Free(replace(context, breaker_blocked_at=None))
    since = context.breaker_blocked_at or now
    return Shut(replace(context, breaker_blocked_at=since), attempt.at + WINDOW, _unproved_why(attempt))


def _proved(context: Context, attempt: Attempt, *, fits: bool) -> bool:
    """Only an edit that stood the verdict lets the next one follow at once: a long burst on a small window needs it."""
    if attempt.last not in (Last.SUMMARY, Last.DROPPED) or context.verdict_due:
        return False
    return fits and context.ineffective_strikes == 0 and context.fallback_streak == 0


def _tripped_why(context: Context) -> str:
    if context.ineffective_strikes >= TRIPS:
        return f"the last {context.ineffective_strikes} compactions left the prompt over its threshold"
    return f"the last {context.fallback_streak} summaries failed"


def _unproved_why(attempt: Attempt) -> str:
    match attempt.last:
        case Last.OPEN:
            return "the last compaction did not come to its end"
        case Last.NOTHING:
            return "at the last compaction nothing could be left out"
        case Last.FALLBACK:
            return "the last summary failed"
        case _:
            return "the last compaction has not been seen to help"

"""When a compaction may be tried again: the rule as a table, and as a property over whatever happens."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.request.marked import Ttl
from tests.request.made import STEADY
from workers.compaction.breaker import WINDOW, Attempt, Free, Last, Shut, blocked, judge
from workers.reduction.state import Context

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
FRESH = Context(ttl=Ttl.MINUTES)


def after(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("before", "billed", "expected"),
    [
        (FRESH, 999_999, FRESH),  # nothing was compacted: nothing is judged
        (replace(FRESH, verdict_due=True), 100, replace(FRESH, ineffective_strikes=1)),
        (replace(FRESH, verdict_due=True), 99, FRESH),
        (replace(FRESH, verdict_due=True), None, FRESH),
        (replace(FRESH, verdict_due=True, ineffective_strikes=1), None, replace(FRESH, ineffective_strikes=1)),
        (replace(FRESH, verdict_due=True, ineffective_strikes=1), 200, replace(FRESH, ineffective_strikes=2)),
        (
            replace(FRESH, verdict_due=True, ineffective_strikes=2, fallback_streak=1, breaker_blocked_at=NOON),
            99,
            replace(FRESH, fallback_streak=1),
        ),
        (  # the other counter still blocks, and since when it does stays known
            replace(FRESH, verdict_due=True, ineffective_strikes=2, fallback_streak=2, breaker_blocked_at=NOON),
            99,
            replace(FRESH, fallback_streak=2, breaker_blocked_at=NOON),
        ),
    ],
)
def test_the_verdict_is_given_once_and_by_the_bill_alone(
    before: Context, billed: int | None, expected: Context
) -> None:
    judged = judge(before, billed, 100)
    assert judged == expected
    assert judge(judged, billed, 100) == judged, "a verdict is given once"


SUMMARY = Attempt(NOON, Last.SUMMARY)


@pytest.mark.parametrize(
    ("context", "attempt", "at", "fits", "free"),
    [
        (FRESH, Attempt(), 0, False, True),
        (FRESH, SUMMARY, 10, True, True),  # it helped: the next may follow at once
        (FRESH, SUMMARY, 10, False, False),  # no bill has been seen since
        (FRESH, SUMMARY, 300, False, True),
        (replace(FRESH, verdict_due=True), SUMMARY, 299, True, False),
        (replace(FRESH, ineffective_strikes=1), SUMMARY, 299, True, False),
        (replace(FRESH, ineffective_strikes=1), SUMMARY, 300, True, True),
        (replace(FRESH, fallback_streak=1), Attempt(NOON, Last.FALLBACK), 299, True, False),
        (FRESH, Attempt(NOON, Last.NOTHING), 299, True, False),
        (FRESH, Attempt(NOON, Last.OPEN), 299, True, False),
        (FRESH, Attempt(NOON, Last.OPEN), 300, True, True),
        (FRESH, Attempt(NOON, Last.DROPPED), 1, True, True),
        (replace(FRESH, ineffective_strikes=2), SUMMARY, 9_999, True, False),  # the block begins when it is first met
        (replace(FRESH, ineffective_strikes=2, breaker_blocked_at=NOON), SUMMARY, 299, True, False),
        (replace(FRESH, ineffective_strikes=2, breaker_blocked_at=NOON), SUMMARY, 300, True, True),
        (replace(FRESH, fallback_streak=7, breaker_blocked_at=NOON), SUMMARY, 300, True, True),
    ],
)
def test_whether_one_may_be_tried(context: Context, attempt: Attempt, at: float, fits: bool, free: bool) -> None:
    found = blocked(context, attempt, after(at), fits=fits)
    assert isinstance(found, Free) is free
    if isinstance(found, Shut):
        assert found.until > after(at)
        assert found.why
        assert found.context.breaker_blocked_at is not None


def test_a_probe_leaves_each_tripped_counter_at_one() -> None:
    context = replace(FRESH, ineffective_strikes=3, fallback_streak=2, breaker_blocked_at=NOON)
    found = blocked(context, SUMMARY, after(300), fits=False)
    assert found == Free(replace(FRESH, ineffective_strikes=1, fallback_streak=1), probe=True)
    assert judge(replace(found.context, verdict_due=True), 200, 100).ineffective_strikes == 2, "failing it trips again"


def test_a_restart_neither_disarms_the_breaker_nor_postpones_its_probe() -> None:
    """The seeds' deadline is in memory: where each turn has another worker it begins anew in each and never comes."""
    context = replace(FRESH, ineffective_strikes=2)
    for second in range(300):
        found = blocked(context, SUMMARY, after(second), fits=False)
        assert isinstance(found, Shut)
        context = found.context  # all that the next worker has
    assert isinstance(blocked(context, SUMMARY, after(300), fits=False), Free)


@STEADY
@given(st.lists(st.tuples(st.floats(0, 200), st.sampled_from(list(Last)), st.sampled_from([None, 50, 150]))))
def test_no_two_attempts_that_did_not_help_stand_within_five_minutes(
    story: list[tuple[float, Last, int | None]],
) -> None:
    """Whatever came of each, and whether the next bill was over the threshold, under it, or not told."""
    context, attempt, now, fits = FRESH, Attempt(), NOON, False
    tried: list[tuple[datetime, bool]] = []
    for pause, last, billed in story:
        now += timedelta(seconds=pause)
        found = blocked(context, attempt, now, fits=fits)
        context = found.context
        if isinstance(found, Shut):
            continue
        attempt = Attempt(now, last)
        if last is not Last.OPEN:
            streak = {Last.SUMMARY: 0, Last.FALLBACK: context.fallback_streak + 1}.get(last, context.fallback_streak)
            context = replace(context, verdict_due=True, fallback_streak=streak)
        context = judge(context, billed, 100)
        fits = billed is not None and billed < 100
        helped = fits and last in (Last.SUMMARY, Last.DROPPED) and context.fallback_streak == 0
        tried.append((now, helped))
    for (first, helped), (second, _) in itertools.pairwise(tried):
        assert helped or second - first >= WINDOW

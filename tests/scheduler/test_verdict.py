"""The decision who is dead, as a table; and what the memory of looks forgets."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from scheduler.liveness import Alive, Dead, Looks, Seen, Suspect, Verdict, Watch, Why, verdict

LEASE = 15.0
NOW = 1000.0
BOOT = UUID(int=7)
STARTED = datetime(2026, 11, 30, tzinfo=UTC)


def row(*, silent: float = 2.0, over: bool = False, locked: bool = True) -> Seen:
    return Seen(BOOT, STARTED, silent, over, locked)


def looks(*, steady: float = 100.0, seen: bool = True, absent: float | None = None) -> Looks:
    return Looks(NOW - steady, seen, None if absent is None else NOW - absent)


TABLE: list[tuple[str, Seen, Looks, Verdict]] = [
    ("locked and renewing", row(), looks(), Alive()),
    ("locked, silent, its lease still running", row(silent=14.9), looks(), Alive()),
    ("lock absent for one look", row(locked=False), looks(absent=0.0), Suspect()),
    ("lock absent for less than the distance of two looks", row(locked=False), looks(absent=0.69), Suspect()),
    ("lock absent at two looks, heartbeat old", row(locked=False), looks(absent=0.7), Dead(Why.LOCK_GONE)),
    ("lock absent for long, heartbeat fresh", row(locked=False, silent=1.0), looks(absent=30), Suspect()),
    ("lock absent, heartbeat just too old", row(locked=False, silent=1.01), looks(absent=30), Dead(Why.LOCK_GONE)),
    (
        "never seen locked, looked for less than a lease",
        row(locked=False), looks(steady=14, seen=False, absent=14), Suspect(),
    ),
    (
        "never seen locked, looked for a lease", row(locked=False), looks(steady=15, seen=False, absent=15),
        Dead(Why.LOCK_GONE),
    ),
    ("lease over, looked for a lease, still locked: frozen", row(silent=16, over=True), looks(), Dead(Why.LEASE_OVER)),
    ("lease over, but the looks had a gap", row(silent=16, over=True), looks(steady=14.9), Suspect()),
    (
        "lease over and never locked after a gap",
        row(silent=60, over=True, locked=False), looks(steady=3, seen=False), Suspect(),
    ),
    (
        "killed before a gap: known once a lease was looked through",
        row(silent=60, over=True, locked=False), looks(steady=15, seen=False, absent=15), Dead(Why.LEASE_OVER),
    ),
    (
        "lease over after a gap, and its lock gone since it was seen",
        row(silent=16, over=True, locked=False), looks(steady=5, absent=1), Dead(Why.LOCK_GONE),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("_case", "seen", "remembered", "expected"), TABLE, ids=[case[0] for case in TABLE])
def test_a_row_is_judged_so(_case: str, seen: Seen, remembered: Looks, expected: Verdict) -> None:
    assert verdict(seen, remembered, NOW, LEASE) == expected


def judged(watch: Watch, now: float, seen: Seen, started: datetime = STARTED) -> Verdict:
    ((_, found),) = watch.saw([seen], started, now)
    return found


def steady(watch: Watch, seen: Seen, begin: float, end: float) -> Verdict:
    """Look each half second from `begin` to `end`; the last verdict."""
    now, found = begin, judged(watch, begin, seen)
    while now < end:
        now += 0.5
        found = judged(watch, now, seen)
    return found


def test_a_killed_process_is_dead_at_the_second_absent_look() -> None:
    watch = Watch(LEASE, NOW)
    assert steady(watch, row(), NOW, NOW + 3) == Alive()
    assert judged(watch, NOW + 3.5, row(locked=False)) == Suspect()
    assert judged(watch, NOW + 4.0, row(locked=False)) == Suspect()
    assert judged(watch, NOW + 4.2, row(locked=False)) == Dead(Why.LOCK_GONE)


def test_a_lock_seen_again_in_between_begins_the_count_anew() -> None:
    watch = Watch(LEASE, NOW)
    steady(watch, row(), NOW, NOW + 3)
    judged(watch, NOW + 3.5, row(locked=False))
    judged(watch, NOW + 4.0, row())
    assert judged(watch, NOW + 4.5, row(locked=False)) == Suspect()


def test_a_restarted_server_costs_no_takeover_while_a_lease_to_lock_again_has_not_passed() -> None:
    watch = Watch(LEASE, NOW)
    steady(watch, row(), NOW, NOW + 60)
    after = STARTED + timedelta(hours=1)
    assert judged(watch, NOW + 60.5, row(locked=False, silent=4), after) == Suspect()
    assert watch.breaks == 1
    for tick in range(1, 29):
        assert judged(watch, NOW + 60.5 + tick / 2, row(locked=False, silent=4), after) == Suspect()


def test_a_process_that_locked_again_after_a_restart_and_then_dies_is_found_at_once() -> None:
    watch = Watch(LEASE, NOW)
    after = STARTED + timedelta(hours=1)
    steady(watch, row(), NOW, NOW + 3)
    judged(watch, NOW + 3.5, row(locked=False), after)
    assert judged(watch, NOW + 4.0, row(), after) == Alive()
    judged(watch, NOW + 4.5, row(locked=False), after)
    assert judged(watch, NOW + 5.2, row(locked=False), after) == Dead(Why.LOCK_GONE)


@pytest.mark.parametrize("cause", ["gap", "failed look"])
def test_a_gap_or_a_failed_look_makes_every_lease_wait_once_more(cause: str) -> None:
    watch = Watch(LEASE, NOW)
    steady(watch, row(), NOW, NOW + 60)
    if cause == "failed look":
        watch.broken(NOW + 60.2)
    back = NOW + (62.6 if cause == "gap" else 60.7)
    assert steady(watch, row(silent=20, over=True), back, back + 14) == Suspect()
    assert steady(watch, row(silent=36, over=True), back + 14.5, back + 16) == Dead(Why.LEASE_OVER)


def test_what_is_remembered_of_a_process_goes_with_its_row() -> None:
    watch = Watch(LEASE, NOW)
    judged(watch, NOW, row())
    assert watch.saw([], STARTED, NOW + 0.5) == []
    assert judged(watch, NOW + 1, row(locked=False)) == Suspect()
    assert judged(watch, NOW + 2, row(locked=False)) == Suspect()

"""Jobs that succeed for ever: paused where they bring no news or cost more and more, if their owner wants that."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from scheduler.breakers import Past, tripped
from scheduler.tick import run_due
from shared.ids import uuid7
from tests.scheduler.test_tick import job, ticks
from tests.scheduler.world import World


def _past(*usd: float, answer: str = "fine") -> list[Past]:
    return [Past(f"{answer} {at}", Decimal(str(one))) for at, one in enumerate(usd)]


@pytest.mark.parametrize(
    ("answers", "same", "trips"),
    [
        (["Nothing new.", "nothing  new.", "Nothing new.\n"], 3, True),
        (["Nothing on 2026-11-30 at 06:00.", "Nothing on 2026-11-29 at 6:05:10."], 2, True),
        (["3 letters", "4 letters"], 2, False),
        (["one", "two", "one", "two"], 2, False),
        (["Nothing new."] * 2, 3, False),
        (["Nothing new."] * 9, None, False),
        (["", ""], 2, True),
    ],
)
def test_runs_that_say_the_same_but_for_dates_and_times_bring_no_news(
    answers: Sequence[str], same: int | None, trips: bool
) -> None:
    found = tripped([Past(answer, Decimal(1)) for answer in answers], same, None)
    assert (found is not None) is trips
    assert found is None or found.code == "job_no_news"


@pytest.mark.parametrize(
    ("usd", "dearer", "trips"),
    [
        ([2] * 5 + [1] * 5, "2", True),
        ([1.9] * 5 + [1] * 5, "2", False),
        ([9, 0.1, 0.1, 0.1, 0.1] + [1] * 5, "2", False),  # one dear night
        ([2] * 5 + [1] * 4, "2", False),
        ([2] * 5 + [0] * 5, "2", False),  # from nothing there is no slope
        ([99] * 5 + [1] * 5, None, False),
    ],
)
def test_five_runs_that_cost_so_many_times_the_five_before_are_a_slope(
    usd: Sequence[float], dearer: str | None, trips: bool
) -> None:
    found = tripped(_past(*usd), None, None if dearer is None else Decimal(dearer))
    assert (found is not None) is trips
    assert found is None or (found.code == "job_dearer" and "2.0 times" in found.why)


def _ran(world: World, made: UUID, answer: str, usd: str, hours_ago: int) -> None:
    """A run of the job that ended well."""
    turn = world.admit()
    world.claim(turn)
    world.do(
        "update turns set status = 'done', holder = null, answer = %s, spent_usd = %s, finished_at = clock_now()"
        " where id = %s",
        answer, Decimal(usd), turn,
    )  # fmt: skip
    world.do(
        "insert into ticks (id, job, instant, turn, status) values (%s, %s, %s, %s, 'done')",
        uuid7(), made, datetime.now(UTC) - timedelta(hours=hours_ago), turn,
    )  # fmt: skip


def _due(world: World, **more: Any) -> UUID:
    return job(world, cron="* * * * *", next_at=datetime.now(UTC) - timedelta(seconds=30), **more)


def test_a_job_without_news_is_paused_says_why_and_goes_on_when_somebody_lets_it(world: World) -> None:
    made = _due(world, stop_same=3)
    for hours in (1, 2, 3):
        _ran(world, made, f"Nothing new at 0{hours}:00.", "0.25", hours)
    with world.room() as room:
        assert run_due(room) == 1
        row = world.row("select * from jobs where id = %s", made)
        assert row["paused_at"] is not None
        assert row["paused_why"].startswith("its last 3 runs said the same, which cost $0.7500")
        assert ticks(world, made)[-1] == ("skipped", "job_no_news")
        audit = world.row("select subject, detail from audit where action = 'job.paused'")
        assert audit == {"subject": row["name"], "detail": row["paused_why"]}
        # Resumed as the API does it, it runs though the same three runs still stand.
        world.do(
            "update jobs set paused_at = null, paused_why = null, watched_from = clock_now(), next_at = clock_now()"
            " where id = %s", made,
        )  # fmt: skip
        assert run_due(room) == 1
    assert ticks(world, made)[-1][0] == "started"


def test_a_job_that_becomes_dearer_is_paused_and_one_without_breakers_never(world: World) -> None:
    watched, free = _due(world, stop_dearer=Decimal("1.5")), _due(world)
    for made in (watched, free):
        for hours in range(1, 11):
            _ran(world, made, f"report {hours}", "0.40" if hours < 6 else "0.10", hours)
    with world.room() as room:
        run_due(room)
    assert ticks(world, watched)[-1] == ("skipped", "job_dearer")
    assert ticks(world, free)[-1][0] == "started"

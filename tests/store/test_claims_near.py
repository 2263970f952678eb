"""A turn of which something runs in the background is left to the worker that has it, for a while, then to anybody."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from shared.store.statements import admission, backgrounds, every
from shared.values import TurnClass
from tests.store.conftest import Rows, new_boot
from tests.store.test_claims import claim


@pytest.fixture
def near(rows: Rows) -> UUID:
    """A worker that lives."""
    return worker(rows)


def worker(rows: Rows, number: int = 1) -> UUID:
    boot = new_boot()
    rows.connection.execute(
        "insert into workers (boot_id, kind, host, pid, slots, classes, lock_key, lease_until)"
        " values (%s, 'worker', 'h', 1, 1, '', %s, clock_timestamp() + interval '1 minute')",
        (boot, number),
    )
    return boot


def turn_with_background(rows: Rows, boot: UUID, turn_class: TurnClass = TurnClass.INTERACTIVE) -> UUID:
    """Queued in the middle, as one that woke."""
    session = rows.session()
    turn = rows.turn(session, turn_class)
    rows.connection.execute("update turns set step = 1 where id = %s", (turn,))
    rows.connection.execute(
        "insert into backgrounds (turn, name, session, boot_id, host, may_run_until, fence)"
        " select %s, 'p1.1', id, %s, 'h', clock_timestamp() + interval '1 hour', fence from sessions where id = %s",
        (turn, boot, session),
    )
    return turn


def by(rows: Rows, boot: UUID, **more: Any) -> UUID | None:
    got = claim(rows.connection, more={"boot": boot}, **more)
    return None if got is None else got["turn"]


@pytest.mark.parametrize("classes", [tuple(TurnClass), (TurnClass.INTERACTIVE,)], ids=["any", "questions"])
def test_another_leaves_it_to_the_worker_that_has_it(rows: Rows, near: UUID, classes: tuple[TurnClass, ...]) -> None:
    turn = turn_with_background(rows, near)
    other = rows.turn(rows.session())
    assert by(rows, new_boot(), classes=classes) == other
    assert by(rows, new_boot(), classes=classes) is None
    assert by(rows, near, classes=classes) == turn


def test_after_ten_seconds_anybody_claims_it(rows: Rows, near: UUID) -> None:
    turn = turn_with_background(rows, near)
    rows.connection.execute("update turns set queued_at = clock_now() - interval '11 seconds' where id = %s", (turn,))
    assert by(rows, new_boot()) == turn


GONE = {
    "its worker's lease is over": "update workers set lease_until = clock_timestamp() - interval '1 second'",
    "its worker drains": "update workers set draining = true",
    "its worker has stopped": "update workers set stopped_at = clock_timestamp()",
    "its worker is not known": "delete from workers",
    "its time is over": "update backgrounds set may_run_until = clock_timestamp() - interval '1 second', fence = fence",
    "it is settled": "update backgrounds set status = 'ended', ended_at = clock_now(), fence = fence",
}


@pytest.mark.parametrize("what", list(GONE))
def test_it_is_left_to_nobody_once_nothing_is_there(rows: Rows, near: UUID, what: str) -> None:
    turn = turn_with_background(rows, near)
    assert by(rows, new_boot()) is None
    rows.connection.execute(GONE[what].encode())
    assert by(rows, new_boot()) == turn


def test_it_is_rung_for_all_the_while(rows: Rows, near: UUID) -> None:
    """Else the worker that may claim it would not hear of it."""
    turn_with_background(rows, near, TurnClass.CHILD)
    found = every(rows.connection, admission.WAITING_CLASSES, admission.NO_LIMITS)
    assert [(row["class"], row["sessions"]) for row in found] == [("child", 1)]


def test_its_worker_is_told_that_it_waits(rows: Rows, near: UUID) -> None:
    turn = turn_with_background(rows, near)
    values = {"turns": [str(turn)], "boot": near}
    assert every(rows.connection, backgrounds.BACKGROUNDS_GO_ON, values) == [{"id": str(turn), "waits": True}]
    assert by(rows, near) == turn
    rows.connection.execute("update turns set holder = %s where id = %s", (near, turn))
    assert every(rows.connection, backgrounds.BACKGROUNDS_GO_ON, values) == [{"id": str(turn), "waits": False}]

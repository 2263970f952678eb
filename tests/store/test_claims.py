"""Pick and claim: a limit holds, a session has one runner, nobody starves, however many claim at once."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import psycopg
from psycopg.rows import dict_row

from shared.store.statements import admission, one
from shared.values import TurnClass
from tests.store.conftest import Rows, in_thread, new_boot

EVERY = tuple(TurnClass)


def claim(
    connection: psycopg.Connection, *, limit: int = 1000, classes: Sequence[TurnClass] = EVERY, **more: int
) -> dict[str, Any] | None:
    limits: admission.Limits = {**admission.NO_LIMITS, "principal_limit": limit, **more}  # pyright: ignore[reportAssignmentType]
    with connection.transaction():
        one(connection, admission.CLAIM_LOCK_TAKE, {"key": admission.CLAIM_LOCK})
        picked = admission.pick(connection, classes, limits)
        if picked is None:
            return None
        values = {"session": picked["session"], "turn": picked["id"], "holder": new_boot(), "claim": new_boot()}
        return one(connection, admission.CLAIM, values)


def _race(rows: Rows, claimers: int, *, limit: int) -> list[dict[str, Any]]:
    """All claimers start together and claim until nothing is left."""
    barrier = threading.Barrier(claimers)
    found: list[dict[str, Any]] = []
    lock = threading.Lock()

    def work() -> None:
        with rows.connect(autocommit=True) as connection:
            barrier.wait(10)
            while True:
                got = claim(connection, limit=limit)
                if got is None:
                    return
                with lock:
                    found.append(got)

    threads = [in_thread(work) for _ in range(claimers)]
    for thread in threads:
        thread.join(30)
    return found


def test_a_principals_limit_holds_under_claims_that_race(rows: Rows) -> None:
    """SKIP LOCKED alone lets 10 run where 4 may: the advisory lock is what holds it."""
    for _ in range(20):
        rows.turn(rows.session())
    assert len(_race(rows, 6, limit=4)) == 4
    assert rows.value("select count(*) from turns where status = 'running'") == 4


def test_a_turn_is_claimed_once_and_a_session_runs_one_turn(rows: Rows) -> None:
    sessions = [rows.session() for _ in range(5)]
    for session in sessions:
        for _ in range(3):
            rows.turn(session)
    claimed = _race(rows, 6, limit=1000)
    assert Counter(c["session"] for c in claimed) == Counter(sessions)
    assert rows.value("select count(*) from turns where status = 'running'") == 5


def test_of_a_session_the_first_queued_turn_is_claimed(rows: Rows) -> None:
    session = rows.session()
    first = rows.turn(session)
    rows.turn(session)
    claimed = claim(rows.connection)
    assert claimed is not None
    assert claimed["turn"] == first


def test_interactive_comes_before_child_job_and_chore(rows: Rows) -> None:
    for turn_class in reversed(list(TurnClass)):
        rows.turn(rows.session(), turn_class, rows.person_named(turn_class))
    order = [claim(rows.connection) for _ in TurnClass]
    assert [c["class"] for c in order if c] == [c.value for c in TurnClass]


def test_a_job_that_has_waited_long_goes_before_a_fresh_question(rows: Rows) -> None:
    job = rows.turn(rows.session(), TurnClass.JOB)
    rows.connection.execute("update turns set admit_key = admit_key - interval '10 minutes' where id = %s", (job,))
    rows.turn(rows.session())
    claimed = claim(rows.connection)
    assert claimed is not None
    assert claimed["turn"] == job


def test_one_persons_flood_does_not_starve_another(rows: Rows) -> None:
    flooder, other = rows.person_named("flooder"), rows.person_named("other")
    for _ in range(50):
        rows.turn(rows.session(), person=flooder)
    for _ in range(3):
        assert claim(rows.connection) is not None
    short = rows.turn(rows.session(), person=other)
    claimed = claim(rows.connection)
    assert claimed is not None
    assert claimed["turn"] == short


def test_a_session_whose_row_is_locked_is_passed_over(rows: Rows) -> None:
    """A worker frozen inside a transaction must not hold up everybody's claims."""
    blocked, free = rows.session(), rows.session()
    rows.turn(blocked)
    second = rows.turn(free)
    with rows.connect() as holder:
        holder.execute("select 1 from sessions where id = %s for update", (blocked,))
        claimed = claim(rows.connection)
        assert claimed is not None
        assert claimed["turn"] == second


def test_classes_that_were_not_asked_for_are_left(rows: Rows) -> None:
    rows.turn(rows.session(), TurnClass.JOB)
    assert claim(rows.connection, classes=[TurnClass.INTERACTIVE]) is None


def test_two_turns_of_one_session_cannot_run_whatever_the_code_does(rows: Rows) -> None:
    session = rows.session()
    turns = [rows.turn(session), rows.turn(session)]
    fence = rows.value("update sessions set fence = fence + 1 where id = %s returning fence", session)
    run = "update turns set status = 'running', holder = %s, fence = %s where id = %s"
    rows.connection.execute(run, (new_boot(), fence, turns[0]))
    try:
        rows.connection.execute(run, (new_boot(), fence, turns[1]))
    except psycopg.errors.UniqueViolation:
        return
    raise AssertionError("two turns of one session run")


def test_claiming_counts_an_attempt_and_sets_the_deadline_once(rows: Rows) -> None:
    turn = rows.turn(rows.session())
    claim(rows.connection)
    before = _turn(rows, turn)
    assert (before["attempts"], before["deadline_at"] > before["started_at"]) == (1, True)


def _turn(rows: Rows, turn: UUID) -> dict[str, Any]:
    row = rows.connection.cursor(row_factory=dict_row).execute("select * from turns where id = %s", (turn,)).fetchone()
    assert row is not None
    return row

"""The fence, raced by real connections: whoever lost the right to write writes nothing."""

from __future__ import annotations

import threading
import time
from typing import Any

import psycopg
import pytest
from psycopg.errors import DatabaseError

from deploy.drill.rig import slack
from shared.errors import LeaseLost
from shared.store.pool import Database
from shared.store.statements import admission, one, turn_end
from shared.store.statements import step as step_statements
from shared.values import TurnClass
from tests.store.conftest import Rows, in_thread, new_boot


def _claim(rows: Rows, connection: psycopg.Connection) -> dict[str, Any]:
    with connection.transaction():
        one(connection, admission.CLAIM_LOCK_TAKE, {"key": admission.CLAIM_LOCK})
        picked = admission.pick(connection, tuple(TurnClass), admission.NO_LIMITS)
        assert picked is not None
        claimed = one(
            connection, admission.CLAIM,
            {"session": picked["session"], "turn": picked["id"], "holder": new_boot(), "claim": new_boot()},
        )  # fmt: skip
    assert claimed is not None
    return claimed


def test_a_late_row_is_refused_once_the_fence_has_risen(rows: Rows) -> None:
    session = rows.session()
    turn = rows.turn(session)
    claimed = _claim(rows, rows.connection)
    rows.connection.execute("update sessions set fence = fence + 1 where id = %s", (session,))
    with pytest.raises(DatabaseError) as refused:
        rows.message(rows.connection, session, turn, claimed["fence"])
    assert refused.value.sqlstate == "NS001"
    assert rows.value("select count(*) from messages") == 0


def test_a_late_row_waits_for_the_claim_that_is_under_way_and_is_then_refused(rows: Rows) -> None:
    """A trigger that reads with a plain SELECT or FOR KEY SHARE lets this row land."""
    session = rows.session()
    turn = rows.turn(session)
    claimed = _claim(rows, rows.connection)
    outcome: list[str | None] = []
    with rows.connect() as claimer, rows.connect() as late:
        claimer.execute("update sessions set fence = fence + 1 where id = %s", (session,))

        def write() -> None:
            try:
                rows.message(late, session, turn, claimed["fence"])
                late.commit()
                outcome.append("landed")
            except DatabaseError as error:
                outcome.append(error.sqlstate)
                late.rollback()

        thread = in_thread(write)
        _wait_for_lock(rows, late)
        claimer.commit()
        thread.join(5)
    assert outcome == ["NS001"]
    assert rows.value("select count(*) from messages") == 0


def test_an_open_late_write_makes_the_claim_wait_and_not_starve(rows: Rows) -> None:
    """FOR SHARE would let writers pile up in front of the claim; here it is the next in line."""
    session = rows.session()
    turn = rows.turn(session)
    claimed = _claim(rows, rows.connection)
    fence = claimed["fence"]
    stop = threading.Event()
    landed = [0]

    def hammer(base: int) -> None:
        with rows.connect() as connection:
            n = 0
            while not stop.is_set():
                n += 1
                try:
                    rows.message(connection, session, turn, fence, base + n)
                    connection.commit()
                    landed[0] += 1
                except DatabaseError:
                    connection.rollback()

    threads = [in_thread(lambda base=k * 1_000_000: hammer(base)) for k in range(4)]
    rises = 0
    end = time.monotonic() + 1.0
    with rows.connect(autocommit=True) as connection:
        while time.monotonic() < end:
            connection.execute("update sessions set fence = fence where id = %s", (session,))
            rises += 1
    stop.set()
    for thread in threads:
        thread.join(5)
    assert rises > 20, f"the claimer got in {rises} times beside {landed[0]} writes"


def test_the_fence_rises_at_every_end_of_a_right_to_write(rows: Rows) -> None:
    session = rows.session()
    seen: list[int] = []
    for end in ("finish", "park", "requeue"):
        rows.turn(session)
        claimed = _claim(rows, rows.connection)
        fence = claimed["fence"]
        turn = claimed["turn"]
        values = {
            "session": session, "turn": turn, "fence": fence, "status": "done", "answer": "x", "error_code": None,
            "error_text": None, "reason": "time", "wait_s": 0, "out": False,
        }  # fmt: skip
        statement = {"finish": turn_end.FINISH, "park": turn_end.PARK, "requeue": turn_end.REQUEUE}[end]
        rows.connection.execute("update inbox set folded_into = null, folded_at = null where false")
        _fold_all(rows, session, turn, fence)
        assert one(rows.connection, statement, values) is not None
        after = rows.value("select fence from sessions where id = %s", session)
        assert after == fence + 1, end
        with pytest.raises(DatabaseError):
            rows.message(rows.connection, session, turn, fence, 77)
        seen.append(after)
        rows.connection.execute(
            "update turns set status = 'cancelled', holder = null, parked_on = null, finished_at = now() "
            "where id = %s and status in ('queued', 'parked')",
            (turn,),
        )
    assert seen == sorted(set(seen))


def _fold_all(rows: Rows, session: object, turn: object, fence: int) -> None:
    """As T2 would: the turn's first input becomes a message."""
    rows.connection.execute(
        "with m as (insert into messages (session, turn, step, ordinal, author, role, content, fence) "
        "values (%s, %s, 0, 0, 'p', 'user', '[]', %s) returning id) "
        "update inbox set folded_into = (select id from m), folded_at = now() where turn = %s",
        (session, turn, fence, turn),
    )


def test_a_thawed_worker_cannot_write_into_a_turn_that_was_queued_again(rows: Rows) -> None:
    """If the fence rose only at the claim, this write would land between the take-away and the next claim."""
    session = rows.session()
    rows.turn(session)
    claimed = _claim(rows, rows.connection)
    values = {"session": session, "turn": claimed["turn"], "fence": claimed["fence"]}
    assert one(rows.connection, turn_end.REQUEUE, values) is not None
    with pytest.raises(DatabaseError) as refused:
        rows.message(rows.connection, session, claimed["turn"], claimed["fence"])
    assert refused.value.sqlstate == "NS001"


def test_an_update_of_a_running_turn_needs_the_fence(rows: Rows) -> None:
    session = rows.session()
    turn = rows.turn(session)
    claimed = _claim(rows, rows.connection)
    rows.connection.execute("update sessions set fence = fence + 1 where id = %s", (session,))
    with pytest.raises(DatabaseError) as refused:
        rows.connection.execute("update turns set step = step + 1, fence = %s where id = %s", (claimed["fence"], turn))
    assert refused.value.sqlstate == "NS001"


def test_a_cancel_may_be_asked_for_without_the_fence(rows: Rows) -> None:
    session = rows.session()
    turn = rows.turn(session)
    _claim(rows, rows.connection)
    rows.connection.execute("update turns set cancel_requested_at = now() where id = %s", (turn,))
    assert rows.value("select cancel_requested_at is not null from turns where id = %s", turn)


def test_a_frozen_holder_inside_a_transaction_blocks_its_rescue_for_seconds_only(rows: Rows) -> None:
    """idle_in_transaction_session_timeout: a worker frozen inside a transaction would block its own rescue for ever."""
    session = rows.session()
    frozen = rows.connect()
    frozen.execute("update sessions set fence = fence where id = %s", (session,))
    began = time.monotonic()
    database = Database(rows.url, size=1, patience_s=20)
    try:
        database.read(lambda c: c.execute("update sessions set fence = fence + 1 where id = %s", (session,)))
    finally:
        database.close()
        frozen.close()
    assert 2.0 < time.monotonic() - began < 12.0 * slack()


def test_a_fenced_refusal_is_told_as_a_lost_lease(rows: Rows) -> None:
    session = rows.session()
    turn = rows.turn(session)
    database = Database(rows.url, size=1)
    with pytest.raises(LeaseLost):
        database.write(lambda c: rows.message(c, session, turn, 999), recover=None)
    database.close()


def test_messages_and_edits_are_append_only(rows: Rows) -> None:
    session = rows.session()
    turn = rows.turn(session)
    claimed = _claim(rows, rows.connection)
    rows.message(rows.connection, session, turn, claimed["fence"])
    for attack in ("update messages set content = '[]'", "delete from messages", "truncate messages cascade"):
        with pytest.raises(DatabaseError) as refused:
            rows.connection.execute(attack.encode())
        assert refused.value.sqlstate == "NS002", attack


def test_a_call_is_recorded_once(rows: Rows) -> None:
    """The unique step key: two answers of one step cannot both stand."""
    session = rows.session()
    turn = rows.turn(session)
    claimed = _claim(rows, rows.connection)
    fence = claimed["fence"]
    rows.message(rows.connection, session, turn, fence)
    with pytest.raises(psycopg.errors.UniqueViolation):
        rows.message(rows.connection, session, turn, fence)


def test_holding_reads_the_fence_under_the_lock(rows: Rows) -> None:
    """Who asks after a lost COMMIT waits for the old transaction to end, so its answer is final."""
    session = rows.session()
    with rows.connect() as open_one:
        open_one.execute("update sessions set fence = fence + 1 where id = %s", (session,))
        answer: list[int] = []

        def ask() -> None:
            with rows.connect() as connection:
                found = one(connection, step_statements.HOLD, {"session": session})
                assert found is not None
                answer.append(found["fence"])

        thread = in_thread(ask)
        time.sleep(0.1)
        assert answer == []
        open_one.commit()
        thread.join(5)
    assert answer == [1]


def _wait_for_lock(rows: Rows, connection: psycopg.Connection) -> None:
    """Until that connection waits for a lock: a fact of pg_stat_activity, not a guess."""
    pid = connection.info.backend_pid
    end = time.monotonic() + 5
    while time.monotonic() < end:
        if rows.value("select wait_event_type = 'Lock' from pg_stat_activity where pid = %s", pid):
            return
        time.sleep(0.005)
    raise AssertionError("the late writer never waited")

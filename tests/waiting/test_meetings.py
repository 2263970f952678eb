"""Reason and sleeper meet on one locked row: what comes in the moment in which a turn goes to sleep wakes it, and of
two that come at the same moment the second one does."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import pytest

from shared.store import intake, waits
from shared.store.pool import Connection
from shared.store.statements import one, turn_end, waiting
from shared.values import OnBusy, Role, TurnClass
from tests.ground import Ground, Rehearsal, until
from tests.waiting.acts import cancelled, delegate, tool
from tests.waiting.held_still import Runner
from tests.waiting.invariants import ALWAYS, Memory
from workers.pause import Point

WRITE = tool("write_file", path="a.txt", content="alpha")
AT_SLEEP = frozenset({Point.PARKING})


def _going_to_sleep(worker: Ground, provider: Rehearsal, *tools: Any) -> tuple[UUID, UUID, Runner]:
    """A turn whose holder has locked its row and has not parked it yet."""
    session = worker.session()
    provider.script([{"text": "so", "tools": list(tools)}, {"text": "over"}], session=str(session))
    turn = worker.turn(session, "go")
    runner = Runner(worker, AT_SLEEP)
    assert runner.stands == Point.PARKING
    return session, turn, runner


def _beside(work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work)
    thread.start()
    return thread


def _somebody_waits(worker: Ground) -> bool:
    return bool(worker.rows("select 1 from pg_locks where not granted"))


def _given_a_second(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 1
    while not true() and time.monotonic() < end:
        time.sleep(0.01)


def _decide(worker: Ground, approval: UUID) -> None:
    def work(connection: Connection) -> waits.Woken:
        with connection.transaction():
            return waits.decide(connection, approval, worker.person, Role.APPROVER, approve=True, note=None)

    worker.database.read(work)


def test_a_decision_in_the_moment_in_which_the_turn_goes_to_sleep_is_not_lost(
    worker: Ground, provider: Rehearsal
) -> None:
    _, turn, runner = _going_to_sleep(worker, provider, WRITE)
    approval = worker.one("select id from approvals")["id"]
    decided = threading.Event()

    def decide() -> None:
        """As `waits.decide`, and slow: between its decision and its look at the sleeper the sleeper acts."""
        values = {
            "approval": approval,
            "principal": worker.person,
            "status": "approved",
            "note": None,
            "scope": "once",
            "grant": uuid4(),
        }
        with worker.database.connection() as connection, connection.transaction():
            one(connection, turn_end.LOCK_TURN, {"turn": turn})
            one(connection, waiting.DECIDE, values)
            decided.set()
            _given_a_second(lambda: _somebody_waits(worker))
            waits.wake(connection, turn)

    thread = _beside(decide)
    decided.wait(0.5)  # it cannot have, while the sleeper holds its row
    runner.let_go()
    thread.join(20)
    runner.arrive()
    Memory().look(worker)
    worker.look()
    assert worker.view(turn)["status"] == "done"


@pytest.mark.parametrize("what", ["steer", "child", "cancel"])
def test_whoever_comes_while_the_turn_goes_to_sleep_waits_for_it_and_wakes_it(
    worker: Ground, provider: Rehearsal, what: str
) -> None:
    asks = delegate("one") if what == "child" else tool("clarify", question="which?")
    provider.script([{"text": "found it"}], match={"contains": "one"})
    session, turn, runner = _going_to_sleep(worker, provider, asks)
    acts: dict[str, Callable[[], object]] = {
        "steer": lambda: worker.turn(session, "this one", on_busy=OnBusy.STEER),
        "child": lambda: worker.look_once(TurnClass.CHILD),
        "cancel": lambda: cancelled(worker, turn),
    }
    thread = _beside(acts[what])
    until(lambda: _somebody_waits(worker), 10, "somebody waits for the sleeper's row")
    runner.let_go()
    thread.join(20)
    runner.arrive()
    Memory().look(worker)
    worker.look()
    assert worker.view(turn)["status"] == ("cancelled" if what == "cancel" else "done")
    assert all(call["status"] == 200 for call in provider.ledger(session))


def test_of_two_decisions_at_the_same_moment_the_second_one_wakes(worker: Ground, provider: Rehearsal) -> None:
    session = worker.session()
    other = tool("write_file", path="b.txt", content="beta")
    provider.script([{"text": "so", "tools": [WRITE, other]}, {"text": "over"}], session=str(session))
    turn = worker.turn(session, "go")
    worker.look()
    first, second = (row["id"] for row in worker.rows("select id from approvals order by ordinal"))
    with worker.database.connection() as connection, connection.transaction():
        waits.decide(connection, first, worker.person, Role.APPROVER, approve=True, note=None)
        thread = _beside(lambda: _decide(worker, second))
        thread.join(0.5)  # it cannot have, while the first one holds the sleeper's row
    thread.join(20)
    assert not worker.rows(ALWAYS["a turn that sleeps for a reason that is gone"])
    worker.look()
    assert worker.view(turn)["status"] == "done"


def test_two_children_that_end_at_the_same_moment_wake_their_parent_once(worker: Ground, provider: Rehearsal) -> None:
    session = worker.session()
    provider.script([{"text": "so", "tools": [delegate("one", "two")]}, {"text": "over"}], session=str(session))
    provider.script([{"text": "found it"}] * 2)
    turn = worker.turn(session, "go")
    worker.look_once(TurnClass.INTERACTIVE)
    held_at = frozenset({Point.AFTER_CALL})
    runners = [Runner(worker, held_at), Runner(worker, held_at)]
    for runner in runners:
        runner.let_go()
    for runner in runners:
        runner.arrive()
    Memory().look(worker)
    assert (worker.view(turn)["status"], worker.view(turn)["children_open"]) == ("queued", 0)
    worker.look()
    assert worker.view(turn)["status"] == "done"


def test_a_delivery_that_comes_twice_stands_in_the_inbox_once(worker: Ground) -> None:
    session, barrier = worker.session(), threading.Barrier(2)

    def deliver(connection: Connection) -> UUID | None:
        with connection.transaction():
            return intake.deliver(connection, session, worker.person, '[{"type":"text","text":"news"}]', "d:1")

    def send() -> None:
        barrier.wait(10)
        worker.database.read(deliver)

    for thread in [_beside(send), _beside(send)]:
        thread.join(20)
    worker.look()
    row = worker.one("select folded_into from inbox")
    assert row["folded_into"] is not None

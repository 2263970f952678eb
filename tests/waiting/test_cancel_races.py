"""What happens at the same instant, on real locks: each has a defined end, no wake is lost, and nothing deadlocks."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from collections.abc import Callable, Generator
from uuid import UUID

import psycopg
import pytest

from shared.errors import Refused
from shared.store import cancel, pool, waits
from shared.store.pool import Connection
from shared.values import Role, TurnClass
from tests.ground import Ground, Rehearsal, until
from tests.waiting.acts import cancelled, children, delegate, result, tool
from workers.pause import Pauses, Point

ROUNDS = 12
WRITE = tool("write_file", path="a.txt", content="alpha")


@pytest.fixture(autouse=True)
def _no_deadlock() -> Generator[None]:
    before = pool.retries["DeadlockDetected"], pool.retries["LockNotAvailable"]
    yield
    assert (pool.retries["DeadlockDetected"], pool.retries["LockNotAvailable"]) == before


def at_once(*works: Callable[[], object]) -> list[object]:
    """Each in a thread of its own, let go together. What each returned, or the code with which it was refused."""
    barrier = threading.Barrier(len(works))
    found: list[object] = [None] * len(works)

    def run(at: int, work: Callable[[], object]) -> None:
        barrier.wait(10)
        try:
            found[at] = work()
        except Refused as refused:
            found[at] = refused.code
        except Exception as error:  # noqa: BLE001 - a thread's fault is the test's to show
            found[at] = error

    threads = [threading.Thread(target=run, args=each) for each in enumerate(works)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    for one in found:
        if isinstance(one, Exception):
            raise one
    return found


def _parked(worker: Ground, provider: Rehearsal, *tools: object) -> UUID:
    session = worker.session()
    provider.script([{"text": "so", "tools": list(tools)}, {"text": "over"}], session=str(session))
    turn = worker.turn(session, "go")
    worker.look_once(TurnClass.INTERACTIVE)
    assert worker.view(turn)["status"] == "parked"
    return turn


def _decide(worker: Ground, approval: UUID, *, approve: bool) -> str:
    def work(connection: Connection) -> str:
        with connection.transaction():
            waits.decide(connection, approval, worker.person, Role.APPROVER, approve=approve, note=None)
        return "approved" if approve else "denied"

    return worker.database.read(work)


def _next_turn_works(worker: Ground, provider: Rehearsal, turn: UUID) -> None:
    session = worker.view(turn)["session"]
    provider.script([{"text": "still here"}], session=str(session))
    following = worker.turn(session, "and now?")
    worker.look()
    assert worker.view(following)["answer"] == "still here"
    assert all(call["extended"] is not False for call in provider.ledger(session))


def test_approve_deny_and_cancel_at_the_same_instant(worker: Ground, provider: Rehearsal) -> None:
    """The cancel stands whatever came first; of the decisions at most one does, and a late one is told so."""
    turn = UUID(int=0)
    for _ in range(ROUNDS):
        turn = _parked(worker, provider, WRITE)
        approval = worker.one("select id from approvals where turn = %s", turn)["id"]

        approved, denied, ended = at_once(
            lambda a=approval: _decide(worker, a, approve=True),
            lambda a=approval: _decide(worker, a, approve=False),
            lambda t=turn: cancelled(worker, t).status.value,
        )

        assert ended == "cancelled"
        stands = worker.one("select status from approvals where id = %s", approval)["status"]
        late = "approval_over" if stands == "void" else "already_decided"
        assert [approved, denied] == [
            "approved" if stands == "approved" else late, "denied" if stands == "denied" else late,
        ]  # fmt: skip
        assert worker.look() == 0
        assert worker.view(turn)["status"] == "cancelled"
        assert worker.rows("select 1 from tool_runs where turn = %s and status not in ('cancelled')", turn) == []
    _next_turn_works(worker, provider, turn)


def test_of_many_who_cancel_one_wins_and_the_rest_are_told_that_it_is_over(worker: Ground, provider: Rehearsal) -> None:
    for _ in range(ROUNDS):
        turn = _parked(worker, provider, WRITE)
        found = at_once(*[lambda t=turn: cancelled(worker, t).status.value] * 4)
        assert sorted(map(str, found)) == ["cancelled", "turn_over", "turn_over", "turn_over"]


class _HeldAt(Pauses):
    """Holds the first that comes to a point until it is let go."""

    def __init__(self, point: Point) -> None:
        super().__init__("")
        self._here = point
        self.reached, self.go = threading.Event(), threading.Event()

    def inside(self, point: Point) -> bool:
        return point is self._here

    def at(self, point: Point) -> None:
        if point is self._here and not self.reached.is_set():
            self.reached.set()
            assert self.go.wait(20)


@contextlib.contextmanager
def _held_at(worker: Ground, point: Point) -> Generator[_HeldAt]:
    before, pauses = worker.ports, _HeldAt(point)
    worker.ports = dataclasses.replace(before, pauses=pauses)
    try:
        yield pauses
    finally:
        pauses.go.set()
        worker.ports = before


def _somebody_waits_for_a_lock(worker: Ground) -> bool:
    query = "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
    return bool(worker.rows(query))


def test_a_parent_cancelled_while_its_last_child_commits_ends_once_and_its_child_stays_done(
    worker: Ground, provider: Rehearsal
) -> None:
    """The child is in the transaction that ends it, the parent's row is locked by it, and the cancel comes."""
    turn = _parked(worker, provider, delegate("one"))
    with _held_at(worker, Point.FINISHING) as pauses:
        child = threading.Thread(target=worker.look_once, args=(TurnClass.CHILD,))
        child.start()
        assert pauses.reached.wait(10)
        canceller = threading.Thread(target=cancelled, args=(worker, turn))
        canceller.start()
        until(lambda: _somebody_waits_for_a_lock(worker), 10, "the cancel's wait")
        pauses.go.set()
        child.join(20)
        canceller.join(20)
    row = worker.view(turn)
    assert (row["status"], row["children_open"]) == ("cancelled", 0)
    assert [one["status"] for one in children(worker, turn)] == ["done"]
    _next_turn_works(worker, provider, turn)


def test_a_last_child_that_commits_while_its_parent_is_cancelled_wakes_nobody(
    worker: Ground, provider: Rehearsal
) -> None:
    """The other way round: the cancel's transaction is open when the child comes to end."""
    turn = _parked(worker, provider, delegate("one"))
    with psycopg.connect(worker.settings.database_url) as connection:
        cancel.cancel(connection, turn, worker.person)
        child = threading.Thread(target=worker.look_once, args=(TurnClass.CHILD,))
        child.start()
        until(lambda: _somebody_waits_for_a_lock(worker), 10, "the child's wait")
        connection.commit()
        child.join(20)
    row = worker.view(turn)
    assert (row["status"], row["children_open"]) == ("cancelled", 0)
    assert worker.look() == 0
    _next_turn_works(worker, provider, turn)


def test_children_that_end_and_are_cancelled_at_once_with_their_parent_leave_nothing_live(
    worker: Ground, provider: Rehearsal
) -> None:
    for at in range(ROUNDS):
        turn = _parked(worker, provider, delegate("one", "two", "three"))
        first = children(worker, turn)[0]["id"]
        works: list[Callable[[], object]] = [
            lambda: worker.look_once(TurnClass.CHILD),
            lambda: worker.look_once(TurnClass.CHILD),
            lambda c=first: cancelled(worker, c).status.value,
        ]
        if at % 2:
            works.append(lambda t=turn: cancelled(worker, t).status.value)
        at_once(*works)
        worker.look()
        row = worker.view(turn)
        assert (row["status"], row["children_open"]) == ("cancelled" if at % 2 else "done", 0)
        if not at % 2:
            assert result(worker, turn).count("[child") == 3
    assert {row["status"] for row in worker.rows("select status from turns")} <= {"done", "cancelled"}


def test_a_report_that_comes_while_the_sessions_turn_ends_is_read_without_the_sweep(
    worker: Ground, provider: Rehearsal
) -> None:
    """The turn has looked into its inbox for the last time, or it has not: either it reads the report, or the child
    finds the session idle and brings a reader."""
    for _ in range(ROUNDS):
        session = worker.session()
        provider.script(
            [{"text": "so", "tools": [delegate("one", background=True)]}, {"text": "over"}], session=str(session)
        )
        worker.turn(session, "go")
        worker.look_once(TurnClass.INTERACTIVE)
        worker.turn(session, "more")
        at_once(
            lambda: worker.look_once(TurnClass.INTERACTIVE),
            lambda: worker.look_once(TurnClass.CHILD),
        )
        worker.look()
        assert worker.rows("select 1 from inbox where session = %s and folded_into is null", session) == []
        assert worker.one("select count(*) as n from inbox where session = %s and kind = 'child'", session)["n"] == 1
        live = "select 1 from turns where session = %s and status not in ('done', 'failed', 'cancelled')"
        assert worker.rows(live, session) == []


@pytest.mark.parametrize("first", ["turn", "child"])
def test_a_report_and_the_end_of_the_sessions_turn_wait_for_each_other(
    worker: Ground, provider: Rehearsal, first: str
) -> None:
    session = worker.session()
    provider.script(
        [{"text": "so", "tools": [delegate("one", background=True)]}, {"text": "over"}], session=str(session)
    )
    worker.turn(session, "go")
    worker.look_once(TurnClass.INTERACTIVE)
    worker.turn(session, "more")
    ahead, behind = TurnClass.INTERACTIVE, TurnClass.CHILD
    if first == "child":
        ahead, behind = behind, ahead
    with _held_at(worker, Point.FINISHING) as pauses:
        one = threading.Thread(target=worker.look_once, args=(ahead,))
        one.start()
        assert pauses.reached.wait(10)
        other = threading.Thread(target=worker.look_once, args=(behind,))
        other.start()
        if first == "turn":
            until(lambda: _somebody_waits_for_a_lock(worker), 10, "the child's wait for the turn that ends")
        pauses.go.set()
        one.join(20)
        other.join(20)
    worker.look()
    assert worker.rows("select 1 from inbox where session = %s and folded_into is null", session) == []

"""What the sweep makes good: a wake that was lost, a count that is wrong, a wait whose limit is over, and turns that
are left below one that is over."""

from __future__ import annotations

from uuid import UUID

import pytest

from scheduler.parks import end_left, rederive
from scheduler.wake import Waker
from shared.values import TurnClass
from tests.ground import Ground, Rehearsal
from tests.waiting.acts import advance, cancelled, children, delegate, result, tool
from tests.waiting.living import room

WRITE = tool("write_file", path="a.txt", content="alpha")


def _parked(worker: Ground, provider: Rehearsal, *tools: object) -> UUID:
    """A turn that sleeps for its tools; its children, if it has any, are queued."""
    session = worker.session()
    provider.script([{"text": "so", "tools": list(tools)}, {"text": "over"}], session=str(session))
    turn = worker.turn(session, "go")
    assert worker.look_once(TurnClass.INTERACTIVE) == 1
    assert worker.view(turn)["status"] == "parked"
    return turn


def test_a_wake_that_was_lost_is_made_good_and_counted(worker: Ground, provider: Rehearsal) -> None:
    turns = [
        _parked(worker, provider, WRITE),
        _parked(worker, provider, tool("clarify", question="which?")),
        _parked(worker, provider, delegate("one", "two")),
    ]
    with room(worker) as sweeper:
        advance(worker, 6)
        assert rederive(sweeper) == 0  # each has its reason
        worker.execute("update approvals set status = 'denied', decided_at = clock_now()")
        worker.execute("update questions set status = 'answered', answered_at = clock_now(), answer = 'this one'")
        worker.execute("update turns set status = 'cancelled', finished_at = clock_now() where parent is not null")
        assert rederive(sweeper) == 3
        assert sweeper.counters["wake_missed"] == 3
        assert rederive(sweeper) == 0
    assert {worker.view(turn)["status"] for turn in turns} == {"queued"}
    worker.look()
    assert {worker.view(turn)["status"] for turn in turns} == {"done"}


def test_a_young_park_is_left_to_whoever_ends_its_reason(worker: Ground, provider: Rehearsal) -> None:
    turn = _parked(worker, provider, WRITE)
    worker.execute("update approvals set status = 'denied', decided_at = clock_now()")
    with room(worker) as sweeper:
        assert rederive(sweeper) == 0
    assert worker.view(turn)["status"] == "parked"


def test_a_count_that_is_too_high_costs_no_more_than_a_sweep(worker: Ground, provider: Rehearsal) -> None:
    turn = _parked(worker, provider, delegate("one"))
    worker.execute("update turns set children_open = 7 where id = %s", turn)
    worker.look()
    assert (worker.view(turn)["status"], worker.view(turn)["children_open"]) == ("parked", 6)
    advance(worker, 6)
    with room(worker) as sweeper:
        assert rederive(sweeper) == 1
    worker.look()
    assert (worker.view(turn)["status"], worker.view(turn)["children_open"]) == ("done", 0)


def test_a_count_that_is_too_low_wakes_a_parent_that_sleeps_on_with_the_right_one(
    worker: Ground, provider: Rehearsal
) -> None:
    turn = _parked(worker, provider, delegate("one", "two"))
    worker.execute("update turns set children_open = 1 where id = %s", turn)
    assert worker.look_once(TurnClass.CHILD) == 1
    assert worker.view(turn)["status"] == "queued"
    assert worker.look_once(TurnClass.INTERACTIVE) == 1
    assert (worker.view(turn)["status"], worker.view(turn)["children_open"]) == ("parked", 1)
    worker.look()
    assert worker.view(turn)["status"] == "done"
    assert result(worker, turn).count("[child") == 2


def test_nobody_decides_within_the_limit_and_the_sweep_wakes_the_turn_to_a_denial(
    worker: Ground, provider: Rehearsal
) -> None:
    allow, ask = _parked(worker, provider, WRITE), _parked(worker, provider, tool("clarify", question="which?"))
    limit = max(worker.settings.approval_limit_s, worker.settings.clarify_limit_s)
    with room(worker) as sweeper:
        waker = Waker(sweeper)
        assert waker.run() == 0
        advance(worker, limit + 1)
        assert waker.run() == 2
        assert sweeper.counters["wake_missed"] == 0
    worker.look()
    assert [worker.view(turn)["status"] for turn in (allow, ask)] == ["done", "done"]
    assert "nobody decided within" in result(worker, allow)
    assert "nobody answered within" in result(worker, ask)
    statuses = worker.rows("select status from approvals union all select status from questions")
    assert [row["status"] for row in statuses] == ["expired", "expired"]
    assert worker.view(allow)["deadline_at"] > worker.one("select clock_now() as now")["now"]


def test_children_that_are_not_ready_at_the_limit_are_ended_and_the_parent_goes_on(
    worker: Ground, provider: Rehearsal
) -> None:
    turn = _parked(worker, provider, delegate("quick", "slow"))
    assert worker.look_once(TurnClass.CHILD) == 1
    advance(worker, worker.settings.children_limit_s + 1)
    with room(worker) as sweeper:
        assert Waker(sweeper).run() == 1
    assert worker.look_once(TurnClass.INTERACTIVE) == 1
    assert worker.view(turn)["status"] == "done"
    assert "not ready in time and was stopped" in result(worker, turn)
    assert sorted(child["status"] for child in children(worker, turn)) == ["cancelled", "done"]
    assert worker.view(turn)["children_open"] == 0


@pytest.mark.parametrize("ends", ["cancelled", "failed"])
def test_what_is_left_below_a_turn_that_is_over_is_ended_from_root_to_leaf(
    worker: Ground, provider: Rehearsal, ends: str
) -> None:
    """Whoever ended the root died before it went on: children wait, sleep for a person, or sleep for their own."""
    provider.script([{"text": "so", "tools": [WRITE]}], match={"contains": "asks"})
    provider.script([{"text": "so", "tools": [delegate("leaf")]}], match={"contains": "hands on"})
    root = _parked(worker, provider, delegate("waits", "asks", "hands on"))
    waits, asks, hands_on = [child["id"] for child in children(worker, root)]
    worker.execute("update sessions set tools = tools || '{delegate_task}' where kind = 'child'")
    worker.execute("update turns set admit_key = admit_key + interval '1 hour' where id = %s", waits)
    assert [worker.look_once(TurnClass.CHILD) for _ in range(2)] == [1, 1]
    (leaf,) = [child["id"] for child in children(worker, hands_on)]
    worker.execute("update turns set admit_key = admit_key + interval '1 hour' where id = %s", leaf)
    assert [worker.view(turn)["parked_on"] for turn in (asks, hands_on)] == ["approval", "children"]

    with room(worker) as sweeper:
        assert end_left(sweeper) == 0
        if ends == "cancelled":
            cancelled(worker, root)
        else:
            worker.execute(
                "update turns set status = 'failed', error_code = 'x', finished_at = clock_now(), parked_on = null "
                "where id = %s",
                root,
            )
        assert end_left(sweeper) == 4
        assert end_left(sweeper) == 0
    for turn in (waits, asks, hands_on, leaf):
        row = worker.view(turn)
        assert (row["status"], row["cancelled_by"]) == ("cancelled", None)
        assert [event.kind.value for event in worker.events(turn)][-1] == "turn.finished"
    assert worker.one("select status from approvals")["status"] == "void"
    assert worker.look() == 0

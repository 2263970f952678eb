"""Delegation: children of their own, a parent that holds nothing meanwhile, one summary a child."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from scheduler.parks import end_left
from scheduler.wake import Waker
from shared.values import TurnClass
from tests.ground import Ground, Rehearsal
from tests.waiting.acts import advance
from tests.waiting.held_still import Runner
from tests.waiting.living import room
from workers.pause import Point


def _delegate(*goals: str, **more: Any) -> dict[str, Any]:
    return {"name": "delegate_task", "input": {"tasks": [{"goal": goal} for goal in goals], **more}}


def _children(worker: Ground, turn: UUID) -> list[dict[str, Any]]:
    return worker.rows(
        "select c.*, s.kind, s.depth, s.tools, s.workspace from turns c join sessions s on s.id = c.session"
        " where c.parent = %s order by c.child_index",
        turn,
    )


def _parent(worker: Ground, provider: Rehearsal, *tools: dict[str, Any]) -> tuple[UUID, UUID]:
    session = worker.session()
    provider.script([{"text": "I hand it on", "tools": list(tools)}, {"text": "all in"}], session=str(session))
    return session, worker.turn(session, "find out")


def test_a_parent_sleeps_and_reads_one_summary_a_child(worker: Ground, provider: Rehearsal) -> None:
    session, turn = _parent(worker, provider, _delegate("history", "the rest"))
    provider.script([{"text": "the child's finding"}])
    worker.look()  # the parent parks; its children and the woken parent follow in the same look

    row = worker.view(turn)
    assert (row["status"], row["answer"], row["children_open"]) == ("done", "all in", 0)
    children = _children(worker, turn)
    assert [(c["status"], c["kind"], c["depth"], c["class"]) for c in children] == [("done", "child", 1, "child")] * 2
    assert all("delegate_task" not in c["tools"] and "clarify" not in c["tools"] for c in children)
    assert row["children_usd"] == sum(c["spent_usd"] for c in children)
    run = worker.one("select status, result from tool_runs where turn = %s", turn)
    assert run["status"] == "done"
    assert run["result"].count("the child's finding") == 2
    assert all(call["extended"] is not False for call in provider.ledger(session))
    kinds = [e.kind.value for e in worker.events(turn)]
    assert kinds.count("child.started") == kinds.count("child.finished") == 2


def _told(worker: Ground, turn: UUID) -> list[tuple[Any, ...]]:
    found = [event for event in worker.events(turn) if event.kind.value == "child.finished"]
    assert all(event.n == 0 for event in found)  # the number that no holder gives: it changes no text
    return [(event.data["index"], event.data["status"], event.data["turn"]) for event in found]


def test_who_watches_a_parent_learns_of_each_child_as_it_ends(worker: Ground, provider: Rehearsal) -> None:
    _, turn = _parent(worker, provider, _delegate("one", "two", "three"))
    provider.script([{"text": "found"}])
    worker.look_once(TurnClass.INTERACTIVE)
    ids = {row["child_index"]: str(row["id"]) for row in _children(worker, turn)}
    counted: list[int] = []
    for _ in ids:
        worker.look_once(TurnClass.CHILD)
        counted.append(len(_told(worker, turn)))
    assert (counted, worker.view(turn)["status"]) == ([1, 2, 3], "queued")
    worker.look()
    told = _told(worker, turn)
    assert sorted(told) == [(index, "done", ids[index]) for index in range(3)]


def test_a_child_in_the_background_is_told_of_while_its_parent_works(worker: Ground, provider: Rehearsal) -> None:
    """By another number than the parent's holder counts, and under no fence that would silence it."""
    session = worker.session()
    provider.script(
        [{"tools": [_delegate("apart", background=True)]}, {"text": "meanwhile"}, {"text": "it is told"}],
        session=str(session),
    )
    provider.script([{"text": "found"}])
    turn = worker.turn(session, "find out")
    runner = Runner(worker, frozenset({Point.AFTER_CALL}))
    runner.go()  # to the end of its second call: the child is made
    worker.look_once(TurnClass.CHILD)
    (told,) = _told(worker, turn)
    assert told[:2] == (0, "done")
    while not runner.over:
        runner.go()
    counted = [event.n for event in worker.events(turn) if event.n]
    assert counted == list(range(1, len(counted) + 1))
    assert len({event.fence for event in worker.events(turn)}) == 1


def test_children_that_are_stopped_are_told_of_too(worker: Ground, provider: Rehearsal) -> None:
    """By the parent's patience, which is over, and by the sweep below a parent that was told to end."""
    _, turn = _parent(worker, provider, _delegate("one", "two"))
    worker.look_once(TurnClass.INTERACTIVE)
    advance(worker, worker.settings.children_limit_s + 1)
    with room(worker) as sweeper:
        Waker(sweeper).run()
        worker.look_once(TurnClass.INTERACTIVE)
        assert [(index, status) for index, status, _ in _told(worker, turn)] == [(0, "cancelled"), (1, "cancelled")]
        _, left = _parent(worker, provider, _delegate("one"))
        worker.look_once(TurnClass.INTERACTIVE)
        worker.execute("update turns set cancel_requested_at = clock_now() where id = %s", left)
        assert end_left(sweeper) == 1
    assert [(index, status) for index, status, _ in _told(worker, left)] == [(0, "cancelled")]


def test_a_child_never_gets_a_tool_that_its_parent_lacks(worker: Ground, provider: Rehearsal) -> None:
    _, turn = _parent(
        worker, provider,
        {"name": "delegate_task", "input": {"tasks": [{"goal": "x", "tools": ["rm_rf", "read_file"]}]}},
    )  # fmt: skip
    worker.look()
    assert worker.view(turn)["status"] == "done"
    run = worker.one("select status, result from tool_runs where turn = %s", turn)
    assert run["status"] == "failed"
    assert "rm_rf" in run["result"]
    assert _children(worker, turn) == []


def test_a_call_without_a_goal_or_with_too_much_is_an_error_that_says_so(worker: Ground, provider: Rehearsal) -> None:
    bad: list[dict[str, Any]] = [
        {"name": "delegate_task", "input": {"tasks": []}},
        {"name": "delegate_task", "input": {"tasks": [{"goal": "g"}] * 21}},
        {"name": "delegate_task", "input": {"tasks": [{"goal": "g" * 20_001}]}},
        {"name": "delegate_task", "input": {"tasks": [{"goal": "   "}]}},
        {"name": "delegate_task", "input": {}},
    ]
    _, turn = _parent(worker, provider, *bad)
    worker.look()
    assert worker.view(turn)["status"] == "done"
    runs = worker.rows("select status, result from tool_runs where turn = %s order by ordinal", turn)
    assert [run["status"] for run in runs] == ["failed"] * 5
    assert _children(worker, turn) == []


def test_a_child_that_fails_is_an_answer_too(worker: Ground, provider: Rehearsal) -> None:
    _, turn = _parent(worker, provider, _delegate("one", "two"))
    provider.script([{"fault": {"kind": "status", "status": 400}}])
    worker.look()
    assert worker.view(turn)["status"] == "done"
    result = worker.one("select result from tool_runs where turn = %s", turn)["result"]
    assert result.count("it did not finish") == 2
    assert worker.one("select status from tool_runs where turn = %s", turn)["status"] == "failed"

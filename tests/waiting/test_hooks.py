"""Hooks stand around calls that somebody else answers too: asked before a person is, and before children are made."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any
from uuid import UUID

import pytest

from shared.hooks import Call, Deny, Result
from shared.values import OnBusy
from tests.ground import Ground, Rehearsal
from tests.waiting.acts import children, delegate, tool
from workers import hooks
from workers.hooks import Hook, Hooks

WAITING = {
    "an approval": tool("write_file", path="a.txt", content="x"),
    "a question": tool("clarify", question="Which year?"),
    "a delegation": delegate("look"),
    "one in the background": delegate("look", background=True),
}


@pytest.fixture(autouse=True)
def _none_left() -> Generator[None]:
    yield
    hooks.use(Hooks())


def before(work: Callable[[Call], Any], *, guard: bool = False) -> None:
    hooks.use(Hooks([Hook("house", guard, work, None)], 1.0))


def after(work: Callable[[Call, Result], Any]) -> None:
    hooks.use(Hooks([Hook("house", False, None, work)], 1.0))


def ran(worker: Ground, provider: Rehearsal, call: dict[str, Any]) -> tuple[UUID, UUID]:
    session = worker.session()
    provider.script([{"text": "now", "tools": [call]}, {"text": "over"}], session=str(session))
    turn = worker.turn(session, "go")
    worker.look()
    return session, turn


def result(worker: Ground, turn: UUID) -> tuple[str, str]:
    row = worker.one("select status, result from tool_runs where turn = %s", turn)
    return row["status"], row["result"]


def asked_or_made(worker: Ground, turn: UUID) -> list[dict[str, Any]]:
    return [
        *worker.rows("select 1 from approvals where turn = %s", turn),
        *worker.rows("select 1 from questions where turn = %s", turn),
        *children(worker, turn),
    ]


def fails(call: Call) -> None:
    raise RuntimeError(call.tool)


@pytest.mark.parametrize("name", list(WAITING))
def test_a_hook_denies_before_anybody_is_asked_and_a_guard_that_fails_denies(
    worker: Ground, provider: Rehearsal, name: str
) -> None:
    seen: list[Call] = []

    def no(call: Call) -> Deny:
        seen.append(call)
        return Deny("not today")

    call = WAITING[name]
    for work, guard, why in ((no, False, "not today"), (fails, True, "it raised, and it is a guard")):
        before(work, guard=guard)
        session, turn = ran(worker, provider, call)
        assert worker.view(turn)["answer"] == "over"
        assert result(worker, turn) == ("denied", f"refused by the hook house: {why}")
        assert asked_or_made(worker, turn) == []
        if work is no:
            assert seen == [Call(call["name"], call["input"], str(session), str(turn), 1, 1)]


@pytest.mark.parametrize("name", list(WAITING))
def test_a_hook_without_an_objection_and_one_that_fails_and_is_no_guard_change_nothing(
    worker: Ground, provider: Rehearsal, name: str
) -> None:
    before(fails)
    _, turn = ran(worker, provider, WAITING[name])
    assert len(asked_or_made(worker, turn)) == 1


def test_a_hook_is_asked_once_however_often_the_turn_looks(worker: Ground, provider: Rehearsal) -> None:
    seen: list[str] = []
    before(lambda call: seen.append(call.tool))
    _, turn = ran(worker, provider, WAITING["a question"])
    for _ in range(3):
        worker.execute(
            "update turns set status = 'queued', parked_on = null, parked_at = null, wake_at = null where id = %s", turn
        )
        worker.look()
    assert (worker.view(turn)["status"], seen) == ("parked", ["clarify"])


def test_what_was_asked_before_is_not_denied_any_more(worker: Ground, provider: Rehearsal) -> None:
    session, turn = ran(worker, provider, WAITING["a question"])
    before(lambda _: Deny("too late"))
    worker.turn(session, "1789", on_busy=OnBusy.STEER)
    worker.look()
    assert result(worker, turn) == ("done", "person answered: 1789")


def test_a_persons_answer_and_what_children_tell_are_withheld_where_a_hook_says_so(
    worker: Ground, provider: Rehearsal
) -> None:
    told: list[Result] = []

    def no(call: Call, seen: Result) -> Deny:
        told.append(seen)
        return Deny(f"not of {call.tool}")

    after(no)
    session, turn = ran(worker, provider, WAITING["a question"])
    worker.turn(session, "1789", on_busy=OnBusy.STEER)
    worker.look()
    words = "the call was made; the hook house withholds what came of it: not of clarify"
    assert result(worker, turn) == ("failed", words)
    assert told == [Result("person answered: 1789", is_error=False)]
    assert all("1789" not in row["result"] for row in worker.rows("select result from tool_runs where turn = %s", turn))

    session, turn = ran(worker, provider, WAITING["a delegation"])
    for _ in range(3):
        worker.look()
    assert worker.view(turn)["status"] == "done"
    assert result(worker, turn) == ("failed", words.replace("clarify", "delegate_task"))

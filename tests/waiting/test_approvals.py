"""A call that a person must allow: asked, decided, run or refused, and nothing held meanwhile."""

from __future__ import annotations

import dataclasses
from typing import Any
from uuid import UUID

import pytest

from shared.errors import Refused
from shared.store import cancel, waits
from shared.values import OnBusy, Role
from tests.ground import Ground, Rehearsal
from workers.pause import Pauses, Point


def _tool(name: str, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "input": arguments}


def _asking(worker: Ground, provider: Rehearsal, *tools: dict[str, Any]) -> tuple[UUID, UUID]:
    session = worker.session()
    provider.script([{"text": "I will write", "tools": list(tools)}, {"text": "over"}], session=str(session))
    return session, worker.turn(session, "write it")


WRITE = _tool("write_file", path="a.txt", content="alpha")


def _decide(
    worker: Ground, approval: UUID, *, approve: bool, role: Role = Role.APPROVER, note: str | None = None
) -> Any:
    def work(connection: Any) -> Any:
        with connection.transaction():
            return waits.decide(connection, approval, worker.person, role, approve=approve, note=note)

    return worker.database.read(work)


def _pending(worker: Ground, turn: UUID) -> list[UUID]:
    rows = worker.rows("select id from approvals where turn = %s and status = 'pending' order by ordinal", turn)
    return [row["id"] for row in rows]


def test_a_call_that_needs_a_person_parks_and_runs_once_it_is_allowed(worker: Ground, provider: Rehearsal) -> None:
    session, turn = _asking(worker, provider, _tool("list_files"), WRITE, _tool("read_file", path="a.txt"))
    assert worker.look() == 1
    row = worker.view(turn)
    assert (row["status"], row["parked_on"], row["holder"]) == ("parked", "approval", None)
    workspace = worker.home / "ws" / str(session)
    assert not (workspace / "a.txt").exists()
    assert worker.look() == 0

    (approval,) = _pending(worker, turn)
    assert _decide(worker, approval, approve=True).turn_class == "interactive"
    assert worker.look() == 1

    assert worker.view(turn)["status"] == "done"
    assert (workspace / "a.txt").read_text() == "alpha"
    runs = worker.rows("select tool, status from tool_runs where turn = %s order by ordinal", turn)
    assert [tuple(r.values()) for r in runs] == [
        ("list_files", "done"), ("write_file", "done"), ("read_file", "done"),
    ]  # fmt: skip
    assert all(call["extended"] is not False for call in provider.ledger(session))
    kinds = [e.kind.value for e in worker.events(turn)]
    assert "approval.requested" in kinds
    assert "turn.parked" in kinds


def test_a_denial_is_a_result_that_the_model_reads(worker: Ground, provider: Rehearsal) -> None:
    session, turn = _asking(worker, provider, WRITE)
    worker.look()
    (approval,) = _pending(worker, turn)
    _decide(worker, approval, approve=False, note="not on a Sunday")
    worker.look()

    assert worker.view(turn)["status"] == "done"
    assert not (worker.home / "ws" / str(session) / "a.txt").exists()
    run = worker.one("select status, result, is_error from tool_runs where turn = %s", turn)
    assert run["status"] == "denied"
    assert "not on a Sunday" in run["result"]


def test_a_second_decision_is_refused_and_changes_nothing(worker: Ground, provider: Rehearsal) -> None:
    _, turn = _asking(worker, provider, WRITE)
    worker.look()
    (approval,) = _pending(worker, turn)
    _decide(worker, approval, approve=True)
    with pytest.raises(Refused) as refused:
        _decide(worker, approval, approve=False)
    assert refused.value.code == "already_decided"
    worker.look()
    with pytest.raises(Refused):
        _decide(worker, approval, approve=False)
    assert worker.one("select status from approvals where id = %s", approval)["status"] == "approved"


def test_who_has_not_the_role_does_not_decide(worker: Ground, provider: Rehearsal) -> None:
    _, turn = _asking(worker, provider, WRITE)
    worker.look()
    (approval,) = _pending(worker, turn)
    with pytest.raises(Refused) as refused:
        _decide(worker, approval, approve=True, role=Role.MEMBER)
    assert refused.value.code == "role_insufficient"


def test_requests_of_one_batch_stand_together_in_call_order(worker: Ground, provider: Rehearsal) -> None:
    tools = [_tool("write_file", path=f"{n}.txt", content=str(n)) for n in range(3)]
    session, turn = _asking(worker, provider, *tools)
    worker.look()
    rows = worker.rows(
        "select ordinal, id, created_at from approvals where turn = %s order by created_at, ordinal", turn
    )
    assert len({row["created_at"] for row in rows}) == 1
    assert [row["ordinal"] for row in rows] == [1, 2, 3]
    for at, row in enumerate(rows):
        _decide(worker, row["id"], approve=at != 1)
        worker.look()
    assert worker.view(turn)["status"] == "done"
    written = sorted(p.name for p in (worker.home / "ws" / str(session)).glob("*.txt"))
    assert written == ["0.txt", "2.txt"]


def test_nobody_decides_in_time_is_a_denial_that_the_model_sees(worker: Ground, provider: Rehearsal) -> None:
    _, turn = _asking(worker, provider, WRITE)
    worker.look()
    worker.execute("update approvals set expires_at = clock_now() - interval '1 second'")
    worker.execute(
        "update turns set status = 'queued', parked_on = null, parked_at = null, wake_at = null where id = %s", turn
    )
    worker.look()
    assert worker.view(turn)["status"] == "done"
    run = worker.one("select status, result from tool_runs where turn = %s", turn)
    assert (run["status"], "nobody decided" in run["result"]) == ("denied", True)
    assert worker.one("select status from approvals where turn = %s", turn)["status"] == "expired"


def test_what_a_person_says_meanwhile_denies_what_is_open(worker: Ground, provider: Rehearsal) -> None:
    session, turn = _asking(worker, provider, WRITE)
    worker.look()
    worker.turn(session, "no, leave it", on_busy=OnBusy.STEER)
    worker.look()
    assert worker.view(turn)["status"] == "done"
    run = worker.one("select status, result from tool_runs where turn = %s", turn)
    assert run["status"] == "denied"
    assert "no, leave it" in run["result"]


def test_a_cancel_answers_each_open_call_and_the_next_turn_works(worker: Ground, provider: Rehearsal) -> None:
    session, turn = _asking(worker, provider, _tool("list_files"), WRITE)
    worker.look()

    def work(connection: Any) -> Any:
        with connection.transaction():
            return cancel.cancel(connection, turn, worker.person)

    assert worker.database.read(work).status == "cancelled"
    assert worker.one("select status from approvals where turn = %s", turn)["status"] == "void"
    rows = worker.rows("select ordinal, role from messages where turn = %s order by id", turn)
    assert [tuple(r.values()) for r in rows] == [(0, "user"), (0, "assistant"), (1, "user"), (2, "user")]
    provider.script([{"text": "fine"}], session=str(session))
    following = worker.turn(session, "and now?")
    worker.look()
    assert worker.view(following)["answer"] == "fine"
    assert all(call["extended"] is not False for call in provider.ledger(session))


def test_a_steer_that_came_before_the_park_is_seen_by_it(worker: Ground, provider: Rehearsal) -> None:
    """It stands in the inbox when the turn is about to sleep: the request is denied and the words are folded."""
    session, turn = _asking(worker, provider, WRITE)

    class Speak(Pauses):
        def at(self, point: Point) -> None:
            if point is Point.RECORDED and not spoken:
                spoken.append(True)
                worker.turn(session, "stop that", on_busy=OnBusy.STEER)

    spoken: list[bool] = []
    worker.ports = dataclasses.replace(worker.ports, pauses=Speak(""))
    worker.look()

    assert worker.view(turn)["status"] == "done"
    run = worker.one("select status, result from tool_runs where turn = %s", turn)
    assert run["status"] == "denied"
    said = worker.rows("select content from messages where turn = %s and role = 'user' order by id", turn)
    assert "stop that" in said[-1]["content"]


def test_to_sleep_is_no_attempt(worker: Ground, provider: Rehearsal) -> None:
    _, turn = _asking(worker, provider, WRITE)
    worker.look()
    assert worker.view(turn)["attempts"] == 0
    (approval,) = _pending(worker, turn)
    _decide(worker, approval, approve=True)
    worker.look()
    assert "step.restarted" not in [e.kind.value for e in worker.events(turn)]

"""A question to the person: asked once, answered by what they say next, and never waited for without a limit."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from shared.store import cancel
from shared.values import OnBusy, SessionKind, TurnClass
from tests.ground import Ground, Rehearsal
from workers.pause import Pauses


def _ask(question: str = "Which year?") -> dict[str, Any]:
    return {"name": "clarify", "input": {"question": question}}


def _asking(worker: Ground, provider: Rehearsal, *tools: dict[str, Any], **more: Any) -> tuple[UUID, UUID]:
    session = worker.session(**more)
    provider.script([{"text": "I must know", "tools": list(tools)}, {"text": "over"}], session=str(session))
    return session, worker.turn(session, "find out")


def _results(worker: Ground, turn: UUID) -> list[tuple[str, str]]:
    rows = worker.rows("select status, result from tool_runs where turn = %s order by ordinal", turn)
    return [(row["status"], row["result"]) for row in rows]


def _say(worker: Ground, session: UUID, text: str) -> None:
    worker.turn(session, text, on_busy=OnBusy.STEER)


def test_a_question_parks_the_turn_and_what_is_said_next_is_the_answer(worker: Ground, provider: Rehearsal) -> None:
    session, turn = _asking(worker, provider, _ask())
    worker.look()
    row = worker.view(turn)
    assert (row["status"], row["parked_on"], row["holder"]) == ("parked", "clarify", None)
    _say(worker, session, "1789, \x1b[31mof course")
    worker.look()
    assert worker.view(turn)["answer"] == "over"
    ((status, result),) = _results(worker, turn)
    assert status == "done"
    assert "person answered: 1789" in result
    assert worker.rows("select 1 from inbox where session = %s and kind = 'steer'", session) == []
    asked = [event for event in worker.events(turn) if event.kind.value == "clarify.requested"]
    assert [event.data["question"] for event in asked] == ["Which year?"]
    assert all(call["extended"] is not False for call in provider.ledger(session))


def test_two_questions_of_one_batch_are_answered_together_and_what_ran_beside_them_ran_once(
    worker: Ground, provider: Rehearsal
) -> None:
    session, turn = _asking(
        worker, provider, _ask("Which year?"), {"name": "list_files", "input": {}}, _ask("Which land?")
    )
    worker.look()
    _say(worker, session, "1789, France")
    worker.look()
    assert worker.view(turn)["status"] == "done"
    first, _, third = _results(worker, turn)
    assert first == third
    called = [event for event in worker.events(turn) if event.kind.value == "tool.called"]
    assert [event.data["tool"] for event in called] == ["list_files"]


def test_nobody_answers_in_time_and_the_model_is_told_to_take_the_likeliest(
    worker: Ground, provider: Rehearsal
) -> None:
    _, turn = _asking(worker, provider, _ask())
    worker.look()
    worker.execute("update questions set expires_at = clock_now() - interval '1 second' where turn = %s", turn)
    worker.execute(
        "update turns set status = 'queued', parked_on = null, parked_at = null, wake_at = null where id = %s", turn
    )
    worker.look()
    ((status, result),) = _results(worker, turn)
    assert (worker.view(turn)["status"], status) == ("done", "done")
    assert "nobody answered within 24 h" in result
    assert worker.one("select status from questions where turn = %s", turn)["status"] == "expired"


def test_a_question_and_a_call_to_be_allowed_are_asked_for_in_one_batch(worker: Ground, provider: Rehearsal) -> None:
    """What one says to it answers the question and denies the call: a word is no permission."""
    session, turn = _asking(
        worker, provider, _ask(), {"name": "write_file", "input": {"path": "a.txt", "content": "alpha"}}
    )
    worker.look()
    assert worker.view(turn)["status"] == "parked"
    _say(worker, session, "yes, do it")
    worker.look()
    assert worker.view(turn)["status"] == "done"
    (asked, _), (wrote, why) = _results(worker, turn)
    assert (asked, wrote) == ("done", "denied")
    assert "yes, do it" in why
    assert not (worker.home / "ws" / str(session) / "a.txt").exists()


def test_a_person_is_asked_once_though_the_worker_dies_before_it_sleeps(
    worker: Ground, provider: Rehearsal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dead after the question stands in its row and before the park: the next holder parks and asks nobody again."""
    session, turn = _asking(worker, provider, _ask())

    class Dead(BaseException):
        pass

    def die(_: Pauses, point: object) -> None:
        if str(point) == "parking":
            raise Dead

    with monkeypatch.context() as patched:
        patched.setattr(Pauses, "at", die)
        with pytest.raises(Dead):
            worker.look()
    assert worker.view(turn)["status"] == "running"
    with worker.database.connection() as connection, connection.transaction():
        connection.execute("update sessions set fence = fence + 1 where id = %s", (session,))
        connection.execute(
            "update turns set status = 'queued', holder = null, fence = fence + 1 where id = %s", (turn,)
        )
    worker.look()
    assert worker.view(turn)["parked_on"] == "clarify"
    assert len(worker.rows("select 1 from questions where turn = %s", turn)) == 1
    kinds = [event.kind.value for event in worker.events(turn)]
    assert kinds.count("clarify.requested") == 1
    assert kinds.count("turn.parked") == 1


def test_a_job_has_nobody_to_ask(worker: Ground, provider: Rehearsal) -> None:
    session = worker.session(kind=SessionKind.JOB)
    provider.script([{"text": "hm", "tools": [_ask()]}, {"text": "over"}], session=str(session))
    turn = worker.turn(session, "at night", turn_class=TurnClass.JOB)
    worker.look()
    assert worker.view(turn)["status"] == "done"
    ((status, _),) = _results(worker, turn)
    assert status == "failed"
    assert worker.rows("select 1 from questions where turn = %s", turn) == []


@pytest.mark.parametrize("bad", [{}, {"question": ""}, {"question": "q" * 4_001}, {"question": 7}])
def test_a_question_that_is_none_is_an_error_that_the_model_reads(
    worker: Ground, provider: Rehearsal, bad: dict[str, Any]
) -> None:
    _, turn = _asking(worker, provider, {"name": "clarify", "input": bad})
    worker.look()
    assert worker.view(turn)["status"] == "done"
    ((status, _),) = _results(worker, turn)
    assert status == "failed"


def test_a_question_may_hold_what_no_row_can(worker: Ground, provider: Rehearsal) -> None:
    """Its text broke the insert, and the turn ended as a fault of this program."""
    session, turn = _asking(worker, provider, _ask("a\0b"))
    worker.look()
    assert worker.view(turn)["parked_on"] == "clarify"
    assert worker.one("select question from questions where turn = %s", turn)["question"] == "a\ufffdb"
    _say(worker, session, "so")
    worker.look()
    assert worker.view(turn)["status"] == "done"


def test_a_cancel_voids_the_question_and_the_next_turn_works(worker: Ground, provider: Rehearsal) -> None:
    session, turn = _asking(worker, provider, _ask())
    worker.look()
    with worker.database.connection() as connection, connection.transaction():
        assert cancel.cancel(connection, turn, worker.person).status == "cancelled"
    assert worker.one("select status from questions where turn = %s", turn)["status"] == "void"
    provider.script([{"text": "fine"}], session=str(session))
    following = worker.turn(session, "and now?")
    worker.look()
    assert worker.view(following)["answer"] == "fine"
    assert all(call["extended"] is not False for call in provider.ledger(session))


@pytest.mark.parametrize("blank", ["", " \n\t", "\u00a0"])
def test_a_blank_question_is_refused_to_the_model_and_reaches_nobody(
    worker: Ground, provider: Rehearsal, blank: str
) -> None:
    _, turn = _asking(worker, provider, _ask(blank))
    worker.look()
    assert (worker.view(turn)["status"], worker.rows("select 1 from questions")) == ("done", [])
    ((status, result),) = _results(worker, turn)
    assert status == "failed"
    assert result.strip()

"""Words that come where no call is out: between steps, during a tool, while the turn ends, sleeps or waits to run."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable
from typing import Any, cast
from uuid import UUID

import pytest

from shared.errors import Refused
from shared.store import intake
from shared.values import OnBusy, TurnClass
from tests.ground import until
from tests.steering.conftest import Desk
from tests.waiting.acts import advance
from workers.look import Slots, look
from workers.pause import Pauses, Point

LOOK: dict[str, Any] = {"name": "list_files", "input": {}}
WRITE = {"name": "write_file", "input": {"path": "a.txt", "content": "alpha"}}
ASK = {"name": "clarify", "input": {"question": "which?"}}


class Once:
    """Does something the first time that a point is reached."""

    def __init__(self, point: Point, act: Callable[[], object]) -> None:
        self._point, self._act = point, act

    def inside(self, _: Point) -> bool:
        return False

    def at(self, point: Point) -> None:
        if point is self._point:
            act, self._act = self._act, lambda: None
            act()


def _when(at: Desk, point: Point, act: Callable[[], object]) -> None:
    at.ground.ports = dataclasses.replace(at.ground.ports, pauses=cast("Pauses", Once(point, act)))


@pytest.mark.parametrize("point", [Point.RECORDED, Point.BEFORE_TOOL, Point.AFTER_TOOL])
def test_a_tool_is_never_cut_and_the_very_next_call_has_read_the_words(at: Desk, point: Point) -> None:
    session = at.session({"text": "I look", "tools": [LOOK, LOOK]}, {"text": "seen"})
    turn = at.ground.turn(session, "look")
    _when(at, point, lambda: (at.say(session, "only a glance"), time.sleep(0.3)))
    at.ground.look()
    row = at.ground.view(turn)
    assert (row["answer"], row["steps"], row["refunds"]) == ("seen", 2, 0)
    runs = at.ground.rows("select status from tool_runs where turn = %s", turn)
    assert [r["status"] for r in runs] == ["done", "done"]
    assert len(at.sound(session)) == 2
    assert [text for _, text, _ in at.messages(session)][-2:] == ["only a glance", "seen"]


@pytest.mark.parametrize("point", [Point.AFTER_CALL, Point.FINISHING])
def test_words_that_meet_the_end_of_a_turn_go_on_with_it_or_begin_the_next(at: Desk, point: Point) -> None:
    """While the end holds the turn's row, words wait for it, and then find a turn that is over."""
    session = at.session({"text": "first"}, {"text": "second"})
    turn = at.ground.turn(session, "go")
    said: list[intake.Admitted] = []
    thread = threading.Thread(target=lambda: said.append(at.say(session, "and the rest")))

    def speak() -> None:
        thread.start()
        if point is Point.FINISHING:
            until(lambda: at.ground.rows("select 1 from pg_locks where not granted"), 5, "words that wait")
        else:
            thread.join(10)

    _when(at, point, speak)
    at.ground.look()
    thread.join(10)
    at.ground.look()
    row, (admitted,) = at.ground.view(turn), said
    if point is Point.AFTER_CALL:
        assert (admitted.how, admitted.turn, row["answer"]) == ("steered", turn, "second")
    else:
        assert (admitted.how, row["answer"]) == ("queued", "first")
        assert at.ground.view(admitted.turn)["answer"] == "second"
    at.sound(session)


def test_words_between_the_reservation_and_the_call_are_not_lost(at: Desk) -> None:
    session = at.session({"text": "never", "chunks": 1, "delay_s": 20}, {"text": "heard"})
    turn = at.ground.turn(session, "go")
    _when(at, Point.RESERVED, lambda: at.say(session, "wait"))
    at.ground.look()
    row = at.ground.view(turn)
    assert (row["answer"], row["steps"], row["refunds"]) == ("heard", 2, 1)
    (cut, _) = at.ground.rows("select status, cost_usd, rate_source from calls where turn = %s order by seq", turn)
    assert (cut["status"], cut["cost_usd"]) == ("cut", 0)  # it had not begun: nothing is billed
    at.sound(session)


def test_a_question_takes_the_words_as_its_answer(at: Desk) -> None:
    session = at.session({"tools": [ASK]}, {"text": "blue it is"})
    turn = at.ground.turn(session, "choose")
    at.ground.look()
    assert at.ground.view(turn)["parked_on"] == "clarify"
    assert at.say(session, "blue").woken == intake.Woken(turn, cast("Any", "interactive"))
    at.ground.look()
    assert at.ground.view(turn)["answer"] == "blue it is"
    assert "blue" in at.ground.one("select result from tool_runs where turn = %s", turn)["result"]
    assert [role for role, _, _ in at.messages(session)] == ["user", "assistant", "user", "assistant"]
    at.sound(session)


def test_a_request_takes_the_words_as_a_no(at: Desk) -> None:
    session = at.session({"tools": [WRITE, WRITE]}, {"text": "as you say"})
    turn = at.ground.turn(session, "write")
    at.ground.look()
    at.say(session, "not in here", turn=turn)
    at.ground.look()
    assert at.ground.view(turn)["answer"] == "as you say"
    runs = at.ground.rows("select status, result from tool_runs where turn = %s order by ordinal", turn)
    assert [(r["status"], "not in here" in r["result"]) for r in runs] == [("denied", True)] * 2
    at.sound(session)


def _wake(at: Desk, turn: UUID) -> None:
    """The wait is over, for the key that was refused, and for the turn."""
    advance(at.ground, 31)
    at.ground.execute(
        "update turns set status = 'queued', parked_on = null, parked_at = null, wake_at = null where id = %s", turn
    )


@pytest.mark.parametrize("reason", ["backoff", "time"])
def test_any_other_sleeper_reads_the_words_when_it_wakes(at: Desk, reason: str) -> None:
    limited = {"fault": {"kind": "status", "status": 429, "retry_after": 30}}
    session = at.session(limited, {"text": "better late"})
    turn = at.ground.turn(session, "go")
    at.ground.look()
    at.ground.execute("update turns set parked_on = %s where id = %s", reason, turn)
    assert at.say(session, "no hurry").woken is None
    assert at.ground.view(turn)["status"] == "parked"
    _wake(at, turn)
    at.ground.look()
    row = at.ground.view(turn)
    assert (row["answer"], row["steps"], row["refunds"]) == ("better late", 1, 0)
    assert at.messages(session)[1] == ("user", "no hurry", False)
    at.sound(session, faults=1)


def test_who_waits_for_children_reads_the_words_with_their_result(at: Desk) -> None:
    task = {"name": "delegate_task", "input": {"tasks": [{"goal": "find out"}]}}
    session = at.session({"tools": [task]}, {"text": "both read"})
    turn = at.ground.turn(session, "delegate")
    look(at.ground.ports, at.ground.turns, Slots(8, (TurnClass.INTERACTIVE,)))  # the child waits
    assert at.ground.view(turn)["parked_on"] == "children"
    at.say(session, "also this")
    assert at.ground.view(turn)["status"] == "parked"
    at.ground.look()
    assert at.ground.view(turn)["answer"] == "both read"
    assert at.messages(session)[-2] == ("user", "also this", False)
    at.sound(session)


def test_what_is_said_to_a_turn_that_has_not_begun_is_a_part_of_its_input(at: Desk) -> None:
    """Not of the one before it, which runs and would read it else."""
    slow = {"text": "one two three", "chunks": 3, "gap_s": 0.4}
    session = at.session(slow, {"text": "second"})
    first, second = at.ground.turn(session, "first"), at.ground.turn(session, "next")
    at.run()
    at.streaming(session, 1)
    assert at.say(session, "and more", turn=second).turn == second
    at.done()
    assert (at.ground.view(first)["answer"], at.ground.view(first)["refunds"]) == ("one two three", 0)
    texts = at.ground.rows("select content from messages where turn = %s and role = 'user' order by id", second)
    assert ["next" in texts[0]["content"], "and more" in texts[1]["content"]] == [True, True]
    assert at.ground.view(second)["answer"] == "second"
    at.sound(session)


def test_a_turn_that_waits_for_a_worker_again_is_steered_like_a_running_one(at: Desk) -> None:
    session = at.session({"fault": {"kind": "status", "status": 429, "retry_after": 30}}, {"text": "heard"})
    turn = at.ground.turn(session, "go")
    at.ground.look()
    _wake(at, turn)
    said = at.say(session, "one thing more")
    assert (said.turn, said.how) == (turn, "steered")
    at.ground.look()
    assert at.ground.view(turn)["answer"] == "heard"
    at.sound(session, faults=1)


def test_queued_words_are_turns_of_their_own_in_order_and_reject_names_the_running_one(at: Desk) -> None:
    slow = {"text": "one two three four", "chunks": 4, "gap_s": 0.4}
    session = at.session(slow, {"text": "b"}, {"text": "c"})
    first = at.ground.turn(session, "a")
    at.run()
    at.streaming(session, 1)
    others = [at.ground.turn(session, text, on_busy=OnBusy.QUEUE) for text in "bc"]
    with pytest.raises(Refused) as refused:
        at.ground.turn(session, "d", on_busy=OnBusy.REJECT)
    assert (refused.value.status, str(first) in refused.value.message) == (409, True)
    at.done()
    assert [at.ground.view(t)["answer"] for t in (first, *others)] == [slow["text"], "b", "c"]
    at.sound(session)


def test_more_than_one_boundary_can_fold_is_read_before_any_call_goes_out(at: Desk) -> None:
    session = at.session({"text": "read"})
    turn = at.ground.turn(session, "go")
    for n in range(230):
        at.ground.execute(
            "insert into inbox (session, turn, dedupe_key, kind, author, payload) values (%s, %s, %s, 'steer', %s, %s)",
            session, turn, f"s{n}", at.ground.person, f'[{{"type":"text","text":"{n}"}}]',
        )  # fmt: skip
    at.ground.look()
    assert [text for _, text, _ in at.messages(session)] == ["go", *map(str, range(230)), "read"]
    assert len(at.sound(session)) == 1
    steered = [e for e in at.ground.events(turn) if e.kind.value == "turn.steered"]
    assert [e.data["text"] for e in steered] == [str(n) for n in range(230)]


def test_only_so_much_may_wait_unread_and_only_so_much_at_once(at: Desk) -> None:
    session = at.session({"fault": {"kind": "status", "status": 429, "retry_after": 30}})
    turn = at.ground.turn(session, "go")
    at.ground.look()

    def code(text: str) -> tuple[str, int]:
        with pytest.raises(Refused) as refused:
            at.say(session, text, turn=turn)
        return refused.value.code, refused.value.status

    assert code("x" * 1_000_000) == ("steer_too_large", 413)
    for n in range(intake.MOST_UNREAD):
        at.say(session, str(n))
    assert code("one more") == ("steers_unread", 429)
    assert len(at.ground.rows("select 1 from inbox where session = %s", session)) == intake.MOST_UNREAD + 1


def test_a_turn_that_is_over_and_one_that_is_not_there(at: Desk) -> None:
    session = at.session({"text": "over"})
    turn = at.ground.turn(session, "go")
    at.ground.look()
    for target, expected in ((turn, ("turn_over", 409)), (UUID(int=7), ("not_found", 404))):
        with pytest.raises(Refused) as refused:
            at.say(session, "late", turn=target)
        assert (refused.value.code, refused.value.status) == expected
    elsewhere = at.ground.session()
    with pytest.raises(Refused) as refused:
        at.say(elsewhere, "not mine", turn=turn)
    assert refused.value.code == "not_found"

"""The running call is cut for words that it has not read, and for no others."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from deploy.drill.rig import slack
from shared.stream import HINTS
from tests.ground import until
from tests.steering.conftest import Desk
from workers import hints

LONG = {"text": "one two three four five six seven eight nine ten", "chunks": 10, "gap_s": 0.5}


def test_the_running_call_is_cut_and_what_was_said_stands_before_the_words(at: Desk) -> None:
    session = at.session({"text": "before"}, LONG, {"text": "as you wish"})
    at.ground.turn(session, "hello")
    at.ground.look()
    turn = at.ground.turn(session, "count")
    at.run()
    at.streaming(session, 2, calls=2)
    asked = time.monotonic()
    assert at.say(session, "stop, count in French").turn == turn
    until(lambda: len(at.provider.ledger(session)) == 3, 5, "the next call")
    assert time.monotonic() - asked < 1.0 * slack()
    at.done()

    row = at.ground.view(turn)
    assert (row["status"], row["answer"]) == ("done", "as you wish")
    assert (row["steps"], row["refunds"], row["step"]) == (2, 1, 2)
    roles = at.messages(session)[2:]
    assert [(role, cut) for role, _, cut in roles] == [
        ("user", False), ("assistant", True), ("user", False), ("assistant", False),
    ]  # fmt: skip
    assert str(LONG["text"]).startswith(roles[1][1])
    assert roles[2][1] == "stop, count in French"
    call = at.ground.rows("select status, refund, error_code from calls where turn = %s order by seq", turn)
    assert [tuple(c.values()) for c in call] == [("cut", "steer_cut", "cut_steered"), ("settled", None, None)]
    at.sound(session)
    kinds = [(e.kind.value, bool(e.data.get("cut"))) for e in at.ground.events(turn) if e.kind.value != "text.delta"]
    assert kinds == [
        ("turn.started", False), ("step.started", False), ("step.finished", True), ("turn.steered", False),
        ("step.started", False), ("step.finished", False), ("turn.finished", False),
    ]  # fmt: skip


def test_where_nothing_was_visible_yet_no_message_stands_for_the_call(at: Desk) -> None:
    hidden = {"thinking": "let me see " * 40, "text": "never", "chunks": 20, "gap_s": 0.3}
    session = at.session(hidden, {"text": "at once"}, model="claude-opus-4-8")
    turn = at.ground.turn(session, "think")
    at.run()
    until(lambda: any(e.kind.value == "thinking.started" for e in at.ground.events(turn)), 10, "reasoning")
    at.say(session, "quick")
    at.done()
    row = at.ground.view(turn)
    assert (row["answer"], row["steps"], row["refunds"], row["step"]) == ("at once", 2, 1, 1)
    assert at.messages(session) == [("user", "think", False), ("user", "quick", False), ("assistant", "at once", False)]
    assert at.ground.rows("select id from messages where session = %s and blocks is not null", session) == []
    at.sound(session)
    restarted = [e.data for e in at.ground.events(turn) if e.kind.value == "step.restarted"]
    assert [(d["step"], d["reason"]) for d in restarted] == [(1, "steered")]


def test_half_made_tool_calls_are_dropped(at: Desk) -> None:
    tools: list[dict[str, Any]] = [{"name": "list_files", "input": {}}] * 2
    stalled: dict[str, Any] = {
        "text": "I look", "chunks": 1, "tools": tools, "fault": {"kind": "stall", "after_chunks": 3, "seconds": 20},
    }  # fmt: skip
    session = at.session(stalled, {"text": "then not"})
    turn = at.ground.turn(session, "look")
    at.run()
    until(lambda: any(e.kind.value == "tool.preparing" for e in at.ground.events(turn)), 10, "a call in the making")
    at.say(session, "no need")
    at.done()
    assert at.ground.rows("select 1 from tool_runs where turn = %s", turn) == []
    assert at.messages(session)[1] == ("assistant", "I look", True)
    assert at.ground.view(turn)["answer"] == "then not"
    at.sound(session)


def test_with_redis_gone_it_takes_two_seconds(deaf: Desk) -> None:
    session = deaf.session({**LONG, "gap_s": 1.5}, {"text": "heard"})
    turn = deaf.ground.turn(session, "count")
    deaf.run()
    deaf.streaming(session, 1)
    asked = time.monotonic()
    deaf.say(session, "stop")
    until(lambda: len(deaf.provider.ledger(session)) == 2, 5, "the next call")
    assert time.monotonic() - asked < 2.0 * slack()
    deaf.done()
    assert deaf.ground.view(turn)["answer"] == "heard"
    deaf.sound(session)


def test_five_at_once_keep_their_order_and_none_is_lost(at: Desk) -> None:
    session = at.session(LONG, *[{"text": "all of it"}] * 5)
    turn = at.ground.turn(session, "count")
    at.run()
    at.streaming(session, 1)
    for n in range(5):
        at.say(session, f"say {n}")
    at.done()
    said = [text for role, text, _ in at.messages(session) if role == "user"]
    assert said == ["count", *[f"say {n}" for n in range(5)]]
    row = at.ground.view(turn)
    assert (row["status"], row["answer"]) == ("done", "all of it")
    calls = [c["status"] for c in at.ground.rows("select status from calls where turn = %s", turn)]
    assert (row["refunds"], row["steps"] - row["refunds"]) == (calls.count("cut"), calls.count("settled"))
    assert row["refunds"] >= 1
    at.sound(session)


def test_a_hint_for_words_that_the_call_has_read_cuts_nothing(at: Desk) -> None:
    """It comes late, when they are folded and the next call is out."""
    session = at.session({**LONG, "gap_s": 0.2})
    turn = at.ground.turn(session, "count")
    at.say(session, "to ten", turn=turn, tell=False)
    at.run()
    at.streaming(session, 1)
    for _ in range(5):
        at.client.publish(HINTS, f"steer:{turn}")
        time.sleep(0.1)
    at.done()
    row = at.ground.view(turn)
    assert (row["answer"], row["refunds"]) == (LONG["text"], 0)
    assert len(at.sound(session)) == 1


def test_an_answer_to_the_question_that_is_older_than_the_call_cuts_nothing(at: Desk) -> None:
    """Words stood unread when it was asked; when the answer comes they are folded, and another call is out."""
    session = at.session({**LONG, "gap_s": 0.2})
    turn = at.ground.turn(session, "count")
    at.run()
    at.streaming(session, 1)
    (held,) = at.ground.turns.all()
    call = held.call_in_flight()
    assert call is not None
    held.called()
    held.calling()  # another call is out now
    held.steer(call)
    assert call.reason is None
    held.steer(None)
    held.called()
    at.done()
    assert at.ground.view(turn)["refunds"] == 0


def test_the_retry_of_a_failed_call_that_is_cut_costs_no_step_and_is_no_retry_any_more(at: Desk) -> None:
    session = at.session({"fault": {"kind": "status", "status": 529}}, LONG, {"text": "now"})
    turn = at.ground.turn(session, "count")
    at.run()
    at.streaming(session, 1, calls=2)
    at.say(session, "leave it")
    at.done()
    row = at.ground.view(turn)
    assert (row["answer"], row["steps"], row["refunds"]) == ("now", 2, 1)
    at.sound(session, faults=1)


def test_the_last_call_is_cut_too_and_gives_no_step_back(at: Desk) -> None:
    """It counts as no step, so that there is none to give back: the budget stays spent."""
    tool: dict[str, Any] = {"tools": [{"name": "list_files", "input": {}}]}
    session = at.session(tool, LONG, {"text": "in short"})
    turn = at.ground.turn(session, "work", max_steps=1)
    at.run()
    at.streaming(session, 1, calls=2)
    at.say(session, "shorter")
    at.done()
    row = at.ground.view(turn)
    assert (row["status"], row["answer"], row["steps"], row["refunds"]) == ("done", "in short", 1, 0)
    purposes = at.ground.rows("select purpose, status from calls where turn = %s order by seq", turn)
    assert [tuple(p.values()) for p in purposes] == [("main", "settled"), ("final", "cut"), ("final", "settled")]
    at.sound(session, apart=2)


def test_a_cancel_that_meets_the_words_ends_the_turn_with_both_kept(at: Desk) -> None:
    session = at.session(LONG, {"text": "next"})
    turn = at.ground.turn(session, "count")
    at.run()
    at.streaming(session, 1)
    at.say(session, "and stop", tell=False)
    at.ground.execute("update turns set cancel_requested_at = clock_now() where id = %s", turn)
    at.client.publish(HINTS, f"cancel:{turn}")
    at.done()
    assert at.ground.view(turn)["status"] == "cancelled"
    assert at.messages(session)[-1] == ("user", "and stop", False)
    following = at.ground.turn(session, "and now?")
    at.ground.look()
    assert at.ground.view(following)["answer"] == "next"
    at.sound(session)


def test_what_was_kept_goes_back_byte_for_byte(at: Desk) -> None:
    """Text that JSON writes in more than one way: cut in the middle, stored, sent again."""
    odd = {"text": 'ünï "q" \\ 1e2 \u2028 ключ \U0001f600 and so on and on', "chunks": 12, "gap_s": 0.4}
    session = at.session(odd, {"text": "good"})
    turn = at.ground.turn(session, "odd")
    at.run()
    at.streaming(session, 4)
    at.say(session, "enough \u202e\U0001f600")
    at.done()
    kept = at.ground.one("select content from messages where turn = %s and cut", turn)
    assert str(odd["text"]).startswith(json.loads(kept["content"])[0]["text"])
    at.sound(session)


def test_a_listener_asks_only_for_a_turn_that_is_held_here(at: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []
    real = hints.every

    def counted(*given: Any) -> Any:
        asked.append(time.monotonic())
        return real(*given)

    monkeypatch.setattr(hints, "every", counted)
    time.sleep(0.2)
    before = len(asked)
    for _ in range(20):
        at.client.publish(HINTS, "steer:00000000-0000-0000-0000-000000000000")
        at.client.publish(HINTS, "steer:nonsense")
        time.sleep(0.02)
    assert len(asked) - before <= 1

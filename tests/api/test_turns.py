"""Turns: what a POST leaves behind, the three ways to meet a busy session, steering and cancelling."""

from __future__ import annotations

import json
import threading
from collections import Counter
from typing import Any
from uuid import UUID

import pytest

from tests.api.hand import Hand
from tests.api.serving import Api, Person


def test_a_session_has_its_columns_and_the_defaults_of_the_settings(api: Api, anna: Person) -> None:
    answer = anna.post("/v1/sessions", {"title": "notes", "cap_usd": "1.50"})
    session = answer.json()
    assert answer.status_code == 201
    assert {
        "title": "notes", "title_by": "person", "owner": anna.name, "mine": True, "audience": "private",
        "kind": "chat", "profile": "default",
        "provider": "anthropic", "model": api.settings.model, "status": "idle", "turn_id": None, "queued": 0,
        "cost_usd": 0.0, "reserved_usd": 0.0, "cap_usd": 1.5,
    }.items() <= session.items()  # fmt: skip
    assert session["cache"] == {
        "warm_until": None, "ttl": "5m", "prefix": None, "blocks": None, "called_at": None, "keep_warm": False,
        "warm_pings": 0,
    }  # fmt: skip
    assert session["breaker"] == {
        "ineffective_strikes": 0, "fallback_streak": 0, "blocked_at": None, "verdict_due": False,
    }  # fmt: skip
    assert session["meters"] == {
        "meter": 0, "compact_meter": 0, "junk_tokens": 0, "wrote_tokens": 4000, "hold_5m": 0.1, "hold_1h": 0,
        "regrow_to": 0,
    }  # fmt: skip
    assert set(session["calibration"].values()) == {None}
    (row,) = api.rows("select workspace from sessions where id = %s", session["id"])
    assert row["workspace"] == str(api.settings.home / "workspaces" / session["id"])


def test_a_turn_is_a_row_with_its_input_and_a_place_for_its_events(api: Api, anna: Person) -> None:
    session = anna.session()
    answer = anna.post(f"/v1/sessions/{session}/turns", {"input": "hi \u200fthere", "max_steps": 3, "cap_usd": 0.25})
    assert answer.status_code == 202
    turn = answer.json()["turn"]
    assert answer.json()["events"] == f"/v1/turns/{turn['id']}/events"
    assert {
        "session_id": session, "status": "queued", "class": "interactive", "parked_on": None, "answer": None,
        "error": None, "steps_used": 0, "steps_refunded": 0, "cost_usd": 0.0, "attempts": 0, "takeovers": 0,
        "max_steps": 3, "cap_usd": 0.25, "started_at": None, "finished_at": None, "wake_at": None,
        "tokens": {"input": 0, "output": 0, "cache_read": 0, "cache_write": 0},
    }.items() <= turn.items()  # fmt: skip
    assert turn["waiting"]["on"] == "worker"
    (row,) = api.rows("select kind, payload, dedupe_key from inbox where session = %s", session)
    assert row == {
        "kind": "input", "payload": '[{"type":"text","text":"hi \u200fthere"}]', "dedupe_key": f"input:{turn['id']}",
    }  # fmt: skip
    assert anna.get(f"/v1/turns/{turn['id']}").json() == turn


def test_sessions_come_in_pages_newest_first(anna: Person) -> None:
    made = [anna.session(title=f"n {n}") for n in range(5)]
    seen: list[str] = []
    cursor = None
    while True:
        page = anna.get("/v1/sessions", limit=2, **({"cursor": cursor} if cursor else {})).json()
        seen += [row["id"] for row in page["items"]]
        cursor = page["next"]
        if cursor is None:
            break
    assert seen == made[::-1]


def _both(anna: Person, session: str, **body: Any) -> list[Any]:
    answers: list[Any] = []
    gate = threading.Barrier(6)

    def send(n: int) -> None:
        gate.wait()
        answers.append(anna.post(f"/v1/sessions/{session}/turns", {"input": f"at once {n}", **body}))

    threads = [threading.Thread(target=send, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def test_turns_at_once_to_one_session_queue_in_order(api: Api, anna: Person) -> None:
    session = anna.session()
    assert {answer.status_code for answer in _both(anna, session, on_busy="queue")} == {202}
    rows = api.rows("select t.id from turns t join inbox i on i.turn = t.id where t.session = %s", session)
    assert len(rows) == 6


def test_turns_at_once_that_may_not_wait_leave_one(api: Api, anna: Person) -> None:
    session = anna.session()
    answers = _both(anna, session, on_busy="reject")
    assert Counter(answer.status_code for answer in answers) == {202: 1, 409: 5}
    assert {answer.json()["code"] for answer in answers if answer.status_code == 409} == {"session_busy"}
    assert len(api.rows("select 1 from inbox where session = %s", session)) == 1


def test_turns_at_once_that_steer_reach_the_running_one(api: Api, anna: Person, hand: Hand) -> None:
    session = anna.session()
    turn = anna.turn(session)
    hand.claim(turn)
    answers = _both(anna, session, on_busy="steer")
    assert {(a.status_code, a.json()["how"], a.json()["turn"]["id"]) for a in answers} == {(202, "steered", turn)}
    rows = api.rows("select kind, turn from inbox where kind = 'steer' and session = %s", session)
    assert rows == [{"kind": "steer", "turn": UUID(turn)}] * 6


def test_a_session_takes_only_so_many_queued_turns(api: Api, anna: Person) -> None:
    session = anna.session()
    for _ in range(api.settings.queued_per_session):
        anna.turn(session)
    answer = anna.post(f"/v1/sessions/{session}/turns", {"input": "one more"})
    assert (answer.status_code, answer.json()["code"]) == (429, "session_queue_full")
    assert "retry-after" in answer.headers


def test_steering_is_an_inbox_row_and_a_hint(api: Api, anna: Person, hand: Hand) -> None:
    turn = anna.turn(anna.session())
    hand.claim(turn)
    hints = hand.hints()
    answer = anna.post(f"/v1/turns/{turn}/steer", {"input": "the other way"})
    assert answer.status_code == 202
    assert answer.json()["turn"]["id"] == turn
    (row,) = api.rows("select payload, author from inbox where kind = 'steer' and turn = %s", turn)
    assert json.loads(row["payload"]) == [{"type": "text", "text": "the other way"}]
    assert row["author"] == anna.id
    assert _hint(hints) == f"steer:{turn}"


def _hint(hints: Any) -> str:
    while True:
        message = hints.get_message(timeout=5)
        assert message is not None, "no hint came"
        if message["type"] == "message":
            return message["data"].decode()


def test_a_running_turn_is_asked_to_end_and_its_worker_hears_of_it(anna: Person, hand: Hand) -> None:
    turn = anna.turn(anna.session())
    hand.claim(turn)
    hints = hand.hints()
    answer = anna.post(f"/v1/turns/{turn}/cancel")
    assert answer.status_code == 202
    assert answer.json()["turn"]["status"] == "running"
    assert answer.json()["turn"]["cancel_requested_at"] is not None
    assert _hint(hints) == f"cancel:{turn}"


def test_a_queued_turn_is_cancelled_at_once_and_a_finished_one_is_over(anna: Person, hand: Hand) -> None:
    session = anna.session()
    turn = anna.turn(session)
    assert anna.post(f"/v1/turns/{turn}/cancel").json()["turn"]["status"] == "cancelled"
    for path, body in (("cancel", {}), ("steer", {"input": "late"})):
        answer = anna.post(f"/v1/turns/{turn}/{path}", body)
        assert (answer.status_code, answer.json()["code"]) == (409, "turn_over")
    failed = anna.turn(session)
    hand.claim(failed)
    hand.end(failed, "failed", None, "deadline_passed")
    view = anna.get(f"/v1/turns/{failed}").json()
    assert view["error"] == {"code": "deadline_passed", "message": "deadline_passed"}


def test_a_turn_behind_another_says_that_it_waits_for_its_session(anna: Person, hand: Hand) -> None:
    session = anna.session()
    first, second = anna.turn(session), anna.turn(session)
    assert anna.get(f"/v1/turns/{second}").json()["waiting"]["on"] == "session"
    hand.claim(first)
    view = anna.get(f"/v1/sessions/{session}").json()
    assert (view["status"], view["turn_id"], view["queued"]) == ("running", first, 1)
    found = anna.get(f"/v1/sessions/{session}/turns").json()["items"]
    assert [row["id"] for row in found] == [second, first]


@pytest.mark.parametrize("status", ["pending", "approved", "denied"])
def test_the_inbox_of_approvals_is_empty_for_now(anna: Person, status: str) -> None:
    assert anna.get("/v1/approvals", status=status).json() == {"items": [], "next": None}


def test_a_session_is_called_by_what_is_said_first_until_a_person_names_it(anna: Person, ben: Person) -> None:
    session = anna.session(audience="team")
    path = f"/v1/sessions/{session}"
    assert [anna.get(path).json()[name] for name in ("title", "title_by")] == ["", None]
    anna.turn(session, "\n \x1b[31mTides\u202e on\tTuesday?\nand more")
    anna.turn(session, "something else")
    assert [anna.get(path).json()[name] for name in ("title", "title_by")] == ["Tides on Tuesday?", "first_line"]
    assert ben.http.patch(path, json={"title": "Ben's"}).status_code == 403
    named = anna.http.patch(path, json={"title": "  The\nharbour\x1b]0;x\x07 \u202e" + "and mole " * 50})
    assert (named.status_code, named.json()["title_by"]) == (200, "person")
    assert named.json()["title"].startswith("The harbour and mole and")
    assert len(named.json()["title"]) <= 200
    for blank in ("", "  ", "\x1b[0m\u200b", None):
        assert anna.http.patch(path, json={"title": blank}).json()["code"] == "input_invalid"
    long = anna.session()
    anna.turn(long, "word " * 4_000)
    assert len(anna.get(f"/v1/sessions/{long}").json()["title"]) <= 80

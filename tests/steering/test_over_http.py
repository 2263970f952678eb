"""The same over HTTP: what a client is answered, whatever the turn is doing, and what it may not."""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from shared.values import Role
from tests.api.serving import Api, Person, serving, settings_for
from tests.ground import Rehearsal, until
from tests.steering.conftest import Desk, desk

LONG = {"text": "one two three four five six seven eight", "chunks": 8, "gap_s": 0.5}
SLEEPS = {"fault": {"kind": "status", "status": 429, "retry_after": 30}}


@pytest.fixture
def both(database_url: str, redis_url: str, provider: Rehearsal, tmp_path: Path) -> Generator[tuple[Api, Desk]]:
    settings = settings_for(database_url, redis_url, tmp_path, approve_tools="write_file")
    with (
        serving(settings) as api,
        desk(
            database_url, redis_url, provider, tmp_path, hints_url=redis_url, approve_tools="write_file"
        ) as at,
    ):  # fmt: skip
        yield api, at


def _steer(person: Person, turn: str, text: str, **more: Any) -> tuple[int, dict[str, Any]]:
    answer = person.post(f"/v1/turns/{turn}/steer", {"input": text}, **more)
    return answer.status_code, answer.json()


def test_five_people_speak_at_once_to_a_turn_that_streams(both: tuple[Api, Desk]) -> None:
    api, at = both
    people = [api.person(f"speaker {n}") for n in range(5)]
    session = people[0].session(audience="team")
    at.provider.script([LONG, *[{"text": "all heard"}] * 5], session=session)
    turn = people[0].turn(session, "count")
    at.run()
    at.streaming(UUID(session), 1)
    with ThreadPoolExecutor(5) as pool:
        asked = [pool.submit(_steer, p, turn, f"says {p.name}") for p in people]
        answers = [one.result() for one in asked]
    assert [(status, body["how"], body["turn"]["id"]) for status, body in answers] == [(202, "steered", turn)] * 5
    at.done()

    order = api.rows("select author, payload, folded_into from inbox where turn = %s order by id", turn)
    assert [row["folded_into"] for row in order] == sorted(row["folded_into"] for row in order)
    said = [text for role, text, _ in at.messages(UUID(session)) if role == "user"]
    assert sorted(said[1:]) == sorted(f"says {p.name}" for p in people)
    assert [f"says {p.name}" in sent for p, sent in _spoken(at, turn, people)] == [True] * 5
    row = api.rows("select contributors, steps, refunds, answer, requested_by from turns where id = %s", turn)[0]
    assert row["answer"] == "all heard"
    calls = [c["status"] for c in api.rows("select status from calls where turn = %s", turn)]
    assert (row["refunds"], row["steps"] - row["refunds"]) == (calls.count("cut"), calls.count("settled"))
    assert row["refunds"] >= 1
    assert set(row["contributors"]) == {p.id for p in people[1:]}
    at.sound(UUID(session))


def _spoken(at: Desk, turn: str, people: list[Person]) -> list[tuple[Person, str]]:
    """Who is named in what was sent of each message that followed the first."""
    sent = [text or "" for text in at.sent(UUID(turn))[1:]]
    return [(person, next(text for text in sent if text.startswith(f"[{person.name}]: "))) for person in people]


def test_the_same_key_says_it_once(both: tuple[Api, Desk]) -> None:
    api, at = both
    anna = api.person("anna")
    session = anna.session()
    at.provider.script([LONG, {"text": "once"}], session=session)
    turn = anna.turn(session, "count")
    at.run()
    at.streaming(UUID(session), 1)
    first, again = (_steer(anna, turn, "stop", key="k") for _ in range(2))
    assert (first[0], again) == (202, first)
    at.done()
    assert [text for _, text, _ in at.messages(UUID(session))].count("stop") == 1


@pytest.mark.parametrize("way", ["turn", "session"])
def test_a_parked_turn_takes_words_over_http(both: tuple[Api, Desk], way: str) -> None:
    api, at = both
    anna = api.person("anna")
    write = {"tools": [{"name": "write_file", "input": {"path": "a", "content": "b"}}]}
    ask = {"tools": [{"name": "clarify", "input": {"question": "which?"}}]}
    for reply, reason, status, expected in (
        (ask, "clarify", "done", "the blue one"), (write, "approval", "denied", "the blue one"),
    ):  # fmt: skip
        session = anna.session()
        at.provider.script([reply, {"text": "so be it"}], session=session)
        turn = anna.turn(session, "go")
        at.ground.look()
        assert anna.get(f"/v1/turns/{turn}").json()["parked_on"] == reason
        if way == "turn":
            said = _steer(anna, turn, "the blue one")
        else:
            answer = anna.post(f"/v1/sessions/{session}/turns", {"input": "the blue one", "on_busy": "steer"})
            said = answer.status_code, answer.json()
        assert (said[0], said[1]["how"], said[1]["turn"]["id"], said[1]["turn"]["status"]) == (
            202, "steered", turn, "queued",
        )  # fmt: skip
        at.ground.look()
        (run,) = api.rows("select status, result from tool_runs where turn = %s", turn)
        assert (run["status"], expected in run["result"]) == (status, True)
        assert anna.get(f"/v1/turns/{turn}").json()["answer"] == "so be it"
        at.sound(UUID(session))


def test_bad_targets_and_bad_words(both: tuple[Api, Desk]) -> None:
    api, at = both
    anna, ben = api.person("anna"), api.person("ben")
    session = anna.session()
    at.provider.script([{"text": "over"}], session=session)
    over = anna.turn(session, "go")
    at.ground.look()
    at.provider.script([SLEEPS], session=session)
    parked = anna.turn(session, "sleep")
    at.ground.look()

    def code(person: Person, turn: str, text: str) -> tuple[int, str]:
        status, body = _steer(person, turn, text)
        return status, str(body.get("code", body.get("how")))

    assert code(anna, over, "late") == (409, "turn_over")
    assert code(ben, parked, "let me in") == (404, "not_found")
    assert code(anna, "no-such-turn", "hello") == (404, "not_found")
    assert code(anna, parked, "x" * 1_000_000) == (413, "steer_too_large")
    assert code(anna, parked, "   ") == (422, "input_empty")
    assert code(anna, parked, "x" * 200_000) == (202, "steered")
    assert code(api.person("looker", Role.VIEWER), parked, "hi")[0] in (403, 404)
    answer = anna.post(f"/v1/sessions/{session}/turns", {"input": "x" * 1_000_000, "on_busy": "queue"})
    assert (answer.status_code, answer.json()["how"]) == (202, "queued")  # a long text is a turn's input
    rejected = anna.post(f"/v1/sessions/{session}/turns", {"input": "now", "on_busy": "reject"})
    assert (rejected.status_code, rejected.json()["code"], parked in rejected.json()["detail"]) == (
        409, "session_busy", True,
    )  # fmt: skip


def test_a_weaker_persons_words_are_answered_with_their_own_turn(both: tuple[Api, Desk]) -> None:
    api, at = both
    boss, anna = api.person("boss", Role.APPROVER), api.person("anna")
    session = boss.session(audience="team")
    at.provider.script([LONG, {"text": "yours"}], session=session)
    turn = boss.turn(session, "count")
    at.run()
    at.streaming(UUID(session), 1)
    status, body = _steer(anna, turn, "mine")
    own = body["turn"]["id"]
    assert (status, body["how"], own != turn) == (202, "queued", True)
    assert body["turn"]["waiting"]["on"] == "session"
    assert body["events"] == f"/v1/turns/{own}/events"
    at.done()
    assert anna.get(f"/v1/turns/{own}").json()["answer"] == "yours"
    assert boss.get(f"/v1/turns/{turn}").json()["steps_refunded"] == 0
    at.sound(UUID(session))


def test_viewers_see_the_kept_text_and_then_the_answer(both: tuple[Api, Desk]) -> None:
    """The fold of docs/events.md over a turn that was cut: a step with the text so far, then the answer."""
    api, at = both
    anna = api.person("anna")
    session = anna.session()
    at.provider.script([LONG, {"text": "in short: eight"}], session=session)
    turn = anna.turn(session, "count")
    at.run()
    at.streaming(UUID(session), 2)
    _steer(anna, turn, "shorter")
    at.done()
    found = until(lambda: anna.get(f"/v1/turns/{turn}").json(), 5)
    assert (found["answer"], found["steps_used"], found["steps_refunded"]) == ("in short: eight", 1, 1)
    texts: dict[int, str] = {}
    for event in at.ground.events(UUID(turn)):
        if event.kind.value == "text.delta":
            texts[event.step] = texts.get(event.step, "") + event.data["text"]
        if event.kind.value == "step.finished":
            assert texts[event.step] == event.data["text"]
    shown = anna.get(f"/v1/sessions/{session}/messages").json()["items"]
    cut = [row for row in shown if row["cut"]]
    assert [row["content"][0]["text"] for row in cut] == [texts[1]]
    assert texts[2] == "in short: eight"

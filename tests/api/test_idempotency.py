"""The same key: the same answer, once made; in flight, reused, forgotten after a crash."""

from __future__ import annotations

import threading

import httpx
import psycopg

from tests.api.hand import Hand
from tests.api.serving import Api, Person


def test_a_repeated_post_answers_as_the_first_did_and_happens_once(api: Api, anna: Person, hand: Hand) -> None:
    first = anna.post("/v1/sessions", {"title": "once"}, key="k1")
    again = anna.post("/v1/sessions", {"title": "once"}, key="k1")
    assert (again.status_code, again.content) == (201, first.content)
    assert again.headers["idempotent-replayed"] == "true"
    assert "idempotent-replayed" not in first.headers
    session = first.json()["id"]
    path = f"/v1/sessions/{session}/turns"
    turns = [anna.post(path, {"input": "x"}, key="k2") for _ in range(3)]
    assert {answer.content for answer in turns} == {turns[0].content}
    turn = turns[0].json()["turn"]["id"]
    hand.claim(turn)
    for _ in range(3):
        assert anna.post(f"/v1/turns/{turn}/steer", {"input": "left"}, key="k3").status_code == 202
    cancels = [anna.post(f"/v1/turns/{turn}/cancel", key="k4") for _ in range(2)]
    assert cancels[0].content == cancels[1].content
    counts = api.rows(
        "select (select count(*) from sessions where owner = %s) s, (select count(*) from turns where session = %s) t,"
        " (select count(*) from inbox where session = %s) i",
        anna.id, session, session,
    )  # fmt: skip
    assert counts == [{"s": 1, "t": 1, "i": 2}]


def test_another_body_or_another_route_under_the_same_key_is_refused(anna: Person) -> None:
    session = anna.post("/v1/sessions", {"title": "a"}, key="k").json()["id"]
    for answer in (
        anna.post("/v1/sessions", {"title": "b"}, key="k"),
        anna.post(f"/v1/sessions/{session}/turns", {"input": "x"}, key="k"),
    ):
        assert (answer.status_code, answer.json()["code"]) == (422, "idempotency_key_reused")


def test_two_people_may_use_the_same_key(anna: Person, ben: Person) -> None:
    first, second = (person.post("/v1/sessions", {}, key="same").json()["id"] for person in (anna, ben))
    assert first != second


def test_a_refusal_is_an_answer_and_is_kept(api: Api, anna: Person) -> None:
    session = anna.session()
    anna.turn(session)
    body = {"input": "x", "on_busy": "reject"}
    first = anna.post(f"/v1/sessions/{session}/turns", body, key="k")
    assert first.json()["code"] == "session_busy"
    api.execute("update turns set status = 'cancelled', finished_at = now() where session = %s", session)
    again = anna.post(f"/v1/sessions/{session}/turns", body, key="k")
    assert (again.status_code, again.content) == (409, first.content)
    assert again.headers["content-type"] == "application/problem+json"


def test_a_request_in_flight_is_told_so_and_a_crashed_one_blocks_nobody(api: Api, anna: Person) -> None:
    session = anna.session()
    path = f"/v1/sessions/{session}/turns"
    answers: list[httpx.Response] = []
    with psycopg.connect(api.settings.database_url) as blocker:
        # Holds the session's gate, so that the first request stands in the middle of its transaction.
        blocker.execute("select pg_advisory_xact_lock(7231002, hashtext(%s::text))", (session,))
        thread = threading.Thread(target=lambda: answers.append(anna.post(path, {"input": "x"}, key="k")))
        thread.start()
        while not api.rows("select 1 from pg_locks where locktype = 'advisory' and not granted"):
            pass
        second = anna.post(path, {"input": "x"}, key="k")
        assert (second.status_code, second.json()["code"]) == (409, "idempotency_in_flight")
        # The first one's process dies: its connection goes away in mid-transaction.
        api.execute(
            "select pg_terminate_backend(l.pid) from pg_locks l join pg_stat_activity a on a.pid = l.pid"
            " where l.locktype = 'advisory' and not l.granted and a.datname = current_database()"
        )
        blocker.rollback()
    thread.join(20)
    third = anna.post(path, {"input": "x"}, key="k")
    assert third.status_code == 202
    assert len(api.rows("select 1 from turns where session = %s", session)) == 1
    assert answers[0].content == third.content, "the first try was made again on another connection"


def test_one_key_sent_by_many_at_once_happens_once(api: Api, anna: Person) -> None:
    session = anna.session()
    answers: list[httpx.Response] = []
    threads = [
        threading.Thread(
            target=lambda: answers.append(anna.post(f"/v1/sessions/{session}/turns", {"input": "x"}, key="k"))
        )
        for _ in range(10)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {answer.status_code for answer in answers} <= {202, 409}
    assert len({answer.content for answer in answers if answer.status_code == 202}) == 1
    assert len(api.rows("select 1 from turns where session = %s", session)) == 1


def test_after_a_day_a_key_is_fresh(api: Api, anna: Person) -> None:
    first = anna.post("/v1/sessions", {}, key="k").json()["id"]
    api.execute("update idempotency set created_at = created_at - interval '25 hours' where principal = %s", anna.id)
    assert anna.post("/v1/sessions", {"title": "other body"}, key="k").json()["id"] != first


def test_a_key_has_bounds(anna: Person) -> None:
    for key in ("x" * 151, "a\tb"):
        answer = anna.post("/v1/sessions", {}, key=key)
        assert (answer.status_code, answer.json()["code"]) == (422, "idempotency_key_invalid")

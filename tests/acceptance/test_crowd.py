"""Two beats, two schedulers, three workers; eight clients at once, two hundred turns in twenty sessions, every way of
being busy, every POST sent again, and Valkey flushed once in the middle."""

from __future__ import annotations

import json
import os
import random
import threading
import uuid
from collections import Counter
from collections.abc import Generator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import httpx
import pytest

from tests.acceptance import prefix_script
from tests.acceptance.house import Rig, Row, client, forget_scripts
from tests.acceptance.watching import Watched, watch
from tests.ground import until

SESSIONS, CLIENTS, TURNS = 20, 8, 200
BURST = 5
SEED = int(os.environ.get("ACCEPTANCE_SEED", "20261130"))
pytestmark = pytest.mark.timeout(240)


@dataclass(slots=True)
class Crowd:
    """What the clients did and saw."""

    sessions: list[str]
    watched: dict[str, Watched] = field(default_factory=dict[str, Watched])
    turn_of: dict[str, str] = field(default_factory=dict[str, str])
    session_of: dict[str, str] = field(default_factory=dict[str, str])
    steered: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    said: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    counts: Counter[str] = field(default_factory=Counter[str])
    faults: list[str] = field(default_factory=list[str])
    lock: threading.Lock = field(default_factory=threading.Lock)


@pytest.fixture(scope="module")
def crowd(fleet: Rig, captured: Path) -> Generator[Crowd]:
    for number in range(TURNS):
        fleet.provider.post("script", {"name": f"crowd-{number}", "replies": _replies(number)})
    made = Crowd([fleet.session() for _ in range(SESSIONS)])
    per_client = TURNS // CLIENTS
    threads = [
        threading.Thread(target=_client, args=(fleet, made, range(at * per_client, (at + 1) * per_client)), daemon=True)
        for at in range(CLIENTS)
    ]
    for thread in threads:
        thread.start()
    until(lambda: made.faults or len(made.watched) > TURNS // 2, 100, "half of the turns")
    fleet.redis().flushall()
    for thread in threads:
        thread.join(200)
        assert not thread.is_alive(), made.counts
    yield made
    forget_scripts(fleet)


def _answer(number: int) -> str:
    return f"The answer of turn {number}: größe 1e2, and so on to its end. " * 3


def _replies(number: int) -> list[Row]:
    look = {"name": "list_files", "input": {"path": "."}}
    many = [look] * (12 if number % 10 == 0 else 2)
    return [
        {"text": f"Looking for {number}.", "tools": many, "chunks": 2, "gap_s": 0.005},
        {"tools": [look], "delay_s": 0.02},
        {"text": _answer(number), "chunks": 8, "gap_s": 0.01},
    ]


def _client(stack: Rig, crowd: Crowd, numbers: range) -> None:
    chance = random.Random(SEED + numbers.start)
    try:
        with client(stack.facts["url"], stack.facts["token"]) as http:
            for start in range(numbers.start, numbers.stop, BURST):
                mine = [_say(http, crowd, number, chance) for number in range(start, min(start + BURST, numbers.stop))]
                for turn in mine:
                    seen = watch(http, turn, chance)
                    with crowd.lock:
                        crowd.watched[turn] = seen
    except BaseException as error:
        crowd.faults.append(f"client of {numbers}: {error!r}")
        raise


def _say(http: httpx.Client, crowd: Crowd, number: int, chance: random.Random) -> str:
    """One turn of its own, whatever it takes: a refusal is said again, words that became steering are counted."""
    text = f"turn {number} script:crowd-{number}"
    while True:
        session, mode = chance.choice(crowd.sessions), chance.choice(("queue", "steer", "reject"))
        words = text if mode != "steer" else f"aside {uuid.uuid4()}"
        answer = _twice(http, f"/v1/sessions/{session}/turns", {"input": words, "on_busy": mode}, chance)
        body = answer.json()
        with crowd.lock:
            crowd.counts[f"{mode} {body.get('how', body.get('code'))}"] += 1
        if answer.status_code == 409 and mode == "reject":
            continue
        assert answer.status_code == 202, answer.text
        turn = body["turn"]["id"]
        with crowd.lock:
            crowd.said.setdefault(session, []).append(words)
            crowd.session_of[turn] = session
            if body["how"] == "steered":
                crowd.steered.setdefault(turn, []).append(words)
            elif mode == "steer":
                crowd.turn_of[f"aside {turn}"] = turn  # nobody was busy: it became a turn
            else:
                crowd.turn_of[text] = turn
        if mode != "steer":
            return turn


def _twice(http: httpx.Client, path: str, body: Row, chance: random.Random) -> httpx.Response:
    """The same POST under one key, again and now and then a third time: each answer is the first one."""
    headers = {"Idempotency-Key": str(uuid.uuid4())}
    first = http.post(path, json=body, headers=headers)
    for _ in range(chance.choice((1, 1, 2))):
        again = http.post(path, json=body, headers=headers)
        assert (again.status_code, again.text) == (first.status_code, first.text)
        assert again.headers["idempotent-replayed"] == "true"
    if chance.random() < 0.1:
        other = http.post(path, json={**body, "input": "something else"}, headers=headers)
        assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")
    return first


def _rows(stack: Rig, crowd: Crowd) -> list[Row]:
    return stack.rows("select * from turns where session = any(%s::uuid[]) and class <> 'chore'", crowd.sessions)


def test_the_fleet_is_as_large_as_it_is_said_to_be(fleet: Rig) -> None:
    roles = {role: len(pids) for role, pids in fleet.facts["pids"].items()}
    assert (roles["worker"], roles["scheduler"], roles["beat"]) == (3, 2, 2)


def test_every_turn_ends_done_once(fleet: Rig, crowd: Crowd) -> None:
    assert crowd.faults == []
    asides = [turn for turn in crowd.turn_of.values() if turn not in crowd.watched]
    fleet.all_ended(asides, 60)
    rows = _rows(fleet, crowd)
    assert Counter(row["status"] for row in rows) == Counter({"done": len(rows)}), crowd.counts
    assert {str(row["id"]) for row in rows} == set(crowd.turn_of.values())
    assert len(crowd.watched) == TURNS
    assert all(len(seen.finished) == 1 for seen in crowd.watched.values())
    assert max(row["takeovers"] for row in rows) == 0


def test_all_ways_of_being_busy_were_met(crowd: Crowd) -> None:
    for met in ("queue queued", "steer steered", "steer queued", "reject session_busy", "reject queued"):
        assert crowd.counts[met] > 0, crowd.counts


def test_each_streamed_text_equals_the_answer_whatever_the_connection_did(fleet: Rig, crowd: Crowd) -> None:
    assert sum(seen.connections for seen in crowd.watched.values()) > 2 * TURNS
    for turn, seen in crowd.watched.items():
        view = fleet.turn(turn)
        assert (seen.text, seen.finished[0]["answer"]) == (view["answer"], view["answer"]), turn
        assert len(seen.ids) == len(set(seen.ids)), f"turn {turn}: an event came twice"


def test_each_turn_was_answered_for_itself(fleet: Rig, crowd: Crowd) -> None:
    for number in range(TURNS):
        turn = crowd.turn_of[f"turn {number} script:crowd-{number}"]
        if turn not in crowd.steered:
            view = fleet.turn(turn)
            assert (view["answer"], view["steps_used"]) == (_answer(number), 3)


def test_everything_that_was_said_stands_in_the_transcript_once(fleet: Rig, crowd: Crowd) -> None:
    for session in crowd.sessions:
        rows = fleet.rows("select content from messages where session = %s and role = 'user'", session)
        texts = Counter(
            block["text"] for row in rows for block in json.loads(row["content"]) if block["type"] == "text"
        )
        assert texts == Counter(crowd.said.get(session, []))


def test_no_two_requests_of_a_session_overlap(fleet: Rig, crowd: Crowd) -> None:
    """A call that a steer cut is one that its client left; nothing else leaves one."""
    left = 0
    for session in crowd.sessions:
        calls = fleet.provider.ledger(session)
        assert not [call["index"] for call in calls if call["overlap"]]
        # A call that its client left ends in the provider's log when the provider notices, which may be after the next
        # one came; whether it was left before that is what `overlap` says.
        answered = [(one, after) for one, after in pairwise(calls) if one["state"] != "client_closed"]
        assert all(after["started"] >= one["ended"] for one, after in answered)
        booked = Counter(row["status"] for row in fleet.rows("select status from calls where session = %s", session))
        assert booked.keys() <= {"settled", "cut"}
        # One that was cut before it had reached the provider is not in its ledger; one cut at its end is done there.
        assert booked["settled"] <= sum(call["state"] == "done" for call in calls)
        assert booked["settled"] <= len(calls) <= booked["settled"] + booked["cut"]
        left += booked["cut"]
    assert left <= sum(map(len, crowd.steered.values()))


def test_the_bill_of_each_session_is_the_providers(fleet: Rig, crowd: Crowd) -> None:
    rows = fleet.http.get("/v1/ledger", params={"by": "session"}).raise_for_status().json()["items"]
    booked = {row["key"]: row for row in rows}
    for session in crowd.sessions:
        calls, row = fleet.provider.ledger(session), booked[session]
        if fleet.rows("select 1 from calls where session = %s and status = 'cut'", session):
            continue  # what a cut call cost is assumed, for no provider says it
        assert row["cost_usd"] == pytest.approx(sum(call["usd"] for call in calls), rel=1e-9)
        assert (row["calls"], row["open_calls"], row["reserved_usd"]) == (len(calls), 0, 0)
        assert row["tokens"] == {
            "input": sum(call["input"] for call in calls),
            "output": sum(call["output"] for call in calls),
            "cache_read": sum(call["cache_read"] for call in calls),
            "cache_write": sum(call["cache_write_5m"] + call["cache_write_1h"] for call in calls),
        }


def test_transcripts_alternate_and_every_request_extends_the_one_before(
    fleet: Rig, crowd: Crowd, captured: Path
) -> None:
    sent = [one for one in prefix_script.captured([captured]) if one[1] in set(crowd.sessions)]
    calls = {call["index"]: call for session in crowd.sessions for call in fleet.provider.ledger(session)}
    verdict = prefix_script.judge(sent, calls, 512)
    assert verdict["faults"] == []
    assert (verdict["calls"], verdict["broken"], verdict["unread"]) == (len(calls), 0, 0)
    assert verdict["main"] >= 3 * TURNS

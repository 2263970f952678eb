"""Unknown ids, other people's ids, tokens that are none or were revoked: what one may not see does not exist."""

from __future__ import annotations

import time
from collections.abc import Callable

import httpx
import pytest

from deploy.drill.rig import slack
from tests.acceptance.house import Rig, refused
from tests.acceptance.people import person
from tests.acceptance.watching import events
from tests.ground import until

NOBODY = "01900000-0000-7000-8000-000000000000"
NIGHTLY = "0 0 1 1 *"
Ask = Callable[[httpx.Client, str], httpx.Response]
OF_A_SESSION: dict[str, Ask] = {
    "session": lambda http, id_: http.get(f"/v1/sessions/{id_}"),
    "its turns": lambda http, id_: http.get(f"/v1/sessions/{id_}/turns"),
    "transcript": lambda http, id_: http.get(f"/v1/sessions/{id_}/messages"),
    "projection": lambda http, id_: http.get(f"/v1/sessions/{id_}/messages?view=projection"),
    "a turn": lambda http, id_: http.post(f"/v1/sessions/{id_}/turns", json={"input": "x"}),
    "a delivery": lambda http, id_: http.post(
        "/v1/jobs", json={"name": f"to {id_}", "cron": NIGHTLY, "prompt": "x", "deliver_session": id_}
    ),
}
OF_A_TURN: dict[str, Ask] = {
    "turn": lambda http, id_: http.get(f"/v1/turns/{id_}"),
    "events": lambda http, id_: http.get(f"/v1/turns/{id_}/events"),
    "calls": lambda http, id_: http.get(f"/v1/turns/{id_}/calls"),
    "replay": lambda http, id_: http.get(f"/v1/turns/{id_}/replay?step=1"),
    "steer": lambda http, id_: http.post(f"/v1/turns/{id_}/steer", json={"input": "x"}),
    "cancel": lambda http, id_: http.post(f"/v1/turns/{id_}/cancel", json={}),
}
OF_A_JOB: dict[str, Ask] = {
    "job": lambda http, id_: http.get(f"/v1/jobs/{id_}"),
    "change": lambda http, id_: http.patch(f"/v1/jobs/{id_}", json={"paused": True}),
    "remove": lambda http, id_: http.delete(f"/v1/jobs/{id_}"),
    "run": lambda http, id_: http.post(f"/v1/jobs/{id_}/run", json={}),
    "runs": lambda http, id_: http.get(f"/v1/jobs/{id_}/runs"),
    "explain": lambda http, id_: http.get(f"/v1/jobs/{id_}/explain"),
}


@pytest.mark.parametrize("id_", [NOBODY, "nonsense", "0", NOBODY.upper(), "%00", "' or 1=1 --"])
def test_unknown_ids_are_not_there(fleet: Rig, id_: str) -> None:
    for name, ask in {**OF_A_SESSION, **OF_A_TURN, **OF_A_JOB}.items():
        answer = ask(fleet.http, id_)
        if name == "a delivery" and answer.status_code == 422:
            continue  # the id stands in a body here, whose form is checked first
        refused(answer, 404, "not_found")


def test_what_belongs_to_another_person_does_not_exist(fleet: Rig) -> None:
    with person(fleet) as anna, person(fleet) as ben:
        session = anna.http.post("/v1/sessions", json={"title": "secret plans"}).json()["id"]
        answer = anna.http.post(f"/v1/sessions/{session}/turns", json={"input": "secret words"})
        turn = answer.json()["turn"]["id"]
        until(lambda: anna.http.get(f"/v1/turns/{turn}").json()["status"] == "done", 20, "the end")
        job = {"name": f"secret {turn}", "cron": NIGHTLY, "prompt": "x", "audience": "private"}
        job_id = anna.http.post("/v1/jobs", json=job).json()["id"]

        unknown = {
            name: ask(ben.http, NOBODY).json() for name, ask in {**OF_A_SESSION, **OF_A_TURN, **OF_A_JOB}.items()
        }
        for asks, id_ in ((OF_A_SESSION, session), (OF_A_TURN, turn), (OF_A_JOB, job_id)):
            for name, ask in asks.items():
                refused(ask(ben.http, id_), 404, "not_found")
                assert ask(ben.http, id_).json() == unknown[name], "it can be told from an unknown one"
        for path in ("/v1/sessions", "/v1/jobs", "/v1/ledger?by=session", "/v1/ledger?by=principal", "/v1/approvals"):
            found = ben.http.get(path).raise_for_status().text
            assert [word for word in ("secret", session, job_id) if word in found] == []
        assert anna.http.get(f"/v1/turns/{turn}").json()["cancel_requested_at"] is None
        assert anna.http.get(f"/v1/jobs/{job_id}").json()["paused"] is False


def test_a_token_revoked_while_streaming_ends_the_stream_and_not_the_turn(fleet: Rig) -> None:
    with person(fleet) as anna:
        session = anna.http.post("/v1/sessions", json={}).json()["id"]
        fleet.script(session, [{"text": "one word after another " * 8, "chunks": 20, "gap_s": 0.15}])
        turn = anna.http.post(f"/v1/sessions/{session}/turns", json={"input": "talk"}).json()["turn"]["id"]
        kinds: list[str] = []
        revoked_at = 0.0
        for _, kind, _ in events(anna.http, turn, None):
            kinds.append(kind)
            if kind == "text.delta" and not revoked_at:
                anna.revoke(fleet)
                revoked_at = time.monotonic()
        assert revoked_at
        assert time.monotonic() - revoked_at < 5 * slack()
        assert "turn.finished" not in kinds
        for path in (f"/v1/turns/{turn}/events", f"/v1/turns/{turn}", "/v1/sessions"):
            refused(anna.http.get(path), 401, "token_invalid")
    row = fleet.all_ended([turn], 30)[0]
    assert (row["status"], row["answer"]) == ("done", "one word after another " * 8)


@pytest.mark.parametrize("token", ["ns_", "ns_wrong", "ns_" + "x" * 43, "\u00fc", "a b"])
def test_a_token_that_is_none_is_refused(fleet: Rig, token: str) -> None:
    headers = {b"authorization": f"Bearer {token}".encode()}
    answer = httpx.get(f"{fleet.facts['url']}/v1/sessions", headers=headers, timeout=10)
    refused(answer, 401, "token_invalid")

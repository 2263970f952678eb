"""Stop everything: one call by an admin, over restarts, audited; and nobody else learns of it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Generator
from pathlib import Path

import pytest

from api.cli.main import main
from tests.api.hand import Hand
from tests.api.serving import Api, Person
from tests.ground import until

WHOLE = {"scope": "fleet", "note": "the provider bills wrong"}


@pytest.fixture(autouse=True)
def nothing_stopped(api: Api) -> Generator[None]:
    yield
    api.execute("update stops set lifted_at = now(), lifted_by = placed_by where lifted_at is null")


def _status(api: Api, turn: str) -> str:
    (row,) = api.rows("select status from turns where id = %s", uuid.UUID(turn))
    return row["status"]


def test_an_admin_stops_the_fleet_and_lifts_it_and_both_are_audited(api: Api, admin: Person) -> None:
    made = admin.post("/v1/stops", WHOLE)
    assert made.status_code == 201, made.text
    stop = made.json()
    assert stop == {
        "id": stop["id"], "scope": "fleet", "subject": None, "name": None, "cancel": False,
        "note": "the provider bills wrong", "placed_by": admin.name, "created_at": stop["created_at"],
        "lifted_at": None, "lifted_by": None,
    }  # fmt: skip
    assert admin.get("/v1/stops").json()["items"] == [stop]
    lifted = admin.http.delete(f"/v1/stops/{stop['id']}").json()
    assert lifted["lifted_by"] == admin.name
    assert admin.http.delete(f"/v1/stops/{stop['id']}").json() == lifted  # twice changes nothing
    assert admin.get("/v1/stops").json()["items"] == []
    assert lifted in admin.get("/v1/stops", lifted=True).json()["items"]
    told = api.rows("select action, principal, detail from audit where subject = %s order by id", stop["id"])
    assert told == [
        {"action": "stop.placed", "principal": admin.id, "detail": "fleet the provider bills wrong"},
        {"action": "stop.lifted", "principal": admin.id, "detail": "fleet"},
    ]


def test_only_an_admin_may_stop_see_or_lift(admin: Person, anna: Person) -> None:
    stop = admin.post("/v1/stops", WHOLE).json()["id"]
    for answer in (
        anna.post("/v1/stops", WHOLE), anna.get("/v1/stops"), anna.get(f"/v1/stops/{stop}"),
        anna.http.delete(f"/v1/stops/{stop}"),
    ):  # fmt: skip
        assert (answer.status_code, answer.json()["code"]) == (403, "role_insufficient")


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"scope": "fleet", "subject": "x"}, 422, "subject_needless"),
        ({"scope": "person"}, 422, "subject_missing"),
        ({"scope": "person", "subject": "nobody of that name"}, 404, "not_found"),
        ({"scope": "job", "subject": str(uuid.uuid4())}, 404, "not_found"),
        ({"scope": "tool", "subject": "write_file", "cancel": True}, 422, "tool_cancel"),
        ({"scope": "planet"}, 422, "input_invalid"),
        ({}, 422, "input_invalid"),
    ],
)
def test_a_stop_of_nothing_is_refused_by_name(admin: Person, body: dict[str, object], status: int, code: str) -> None:
    answer = admin.post("/v1/stops", body)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert admin.get("/v1/stops").json()["items"] == []


def test_an_unknown_stop_is_not_found(admin: Person) -> None:
    for id_ in (str(uuid.uuid4()), "nonsense"):
        assert admin.get(f"/v1/stops/{id_}").status_code == 404
        assert admin.http.delete(f"/v1/stops/{id_}").status_code == 404


def test_a_stop_with_cancel_ends_what_was_there_and_lets_others_be(
    api: Api, admin: Person, anna: Person, ben: Person, hand: Hand
) -> None:
    queued, running, other = anna.turn(anna.session()), anna.turn(anna.session()), ben.turn(ben.session())
    hand.claim(running)
    stop = admin.post("/v1/stops", {"scope": "person", "subject": anna.name, "cancel": True, "note": "runaway"})
    assert stop.status_code == 201, stop.text
    assert (_status(api, queued), _status(api, other)) == ("cancelled", "queued")
    (row,) = api.rows("select status, cancel_requested_at, cancelled_by from turns where id = %s", uuid.UUID(running))
    assert row["cancel_requested_at"] is not None
    assert row["cancelled_by"] == admin.id
    later = anna.turn(anna.session())  # what comes after the stop waits; it is not cancelled
    assert _status(api, later) == "queued"


def test_a_stop_sent_twice_under_one_key_is_one_stop(admin: Person) -> None:
    first, second = (admin.post("/v1/stops", WHOLE, key="panic").json() for _ in range(2))
    assert first == second
    assert len(admin.get("/v1/stops").json()["items"]) == 1


def test_metrics_tell_what_is_stopped_and_how_long_turns_waited(
    api: Api, admin: Person, anna: Person, hand: Hand
) -> None:
    admin.post("/v1/stops", WHOLE)
    hand.claim(anna.turn(anna.session()))
    # The figures are remembered for two seconds.
    until(lambda: 'nightshift_stops{scope="fleet"} 1.0' in admin.http.get("/metrics").text, 10, "the stop's figure")
    text = admin.http.get("/metrics").text
    waited = next(x for x in text.splitlines() if x.startswith('nightshift_waited_turns{class="interactive"}'))
    assert float(waited.split()[-1]) >= 1
    assert 'nightshift_waited_seconds{class="interactive",quantile="0.95"}' in text


def test_the_command_line_stops_lists_and_resumes(
    api: Api, admin: Person, anna: Person, monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setenv("NIGHTSHIFT_URL", api.url)
    monkeypatch.setenv("NIGHTSHIFT_TOKEN", admin.token)
    monkeypatch.setenv("NIGHTSHIFT_HOME", str(tmp_path))
    assert main(["stop", "person", anna.name, "--note", "too dear", "--json"]) == 0
    stop = json.loads(capsys.readouterr().out)
    assert (stop["subject"], stop["name"], stop["note"]) == (str(anna.id), anna.name, "too dear")
    assert main(["stops", "--json"]) == 0
    assert [row["id"] for row in json.loads(capsys.readouterr().out)] == [stop["id"]]
    assert main(["resume", stop["id"]]) == 0
    assert anna.name in capsys.readouterr().out
    assert main(["stops"]) == 0
    assert "nothing is stopped" in capsys.readouterr().out
    assert main(["stop", "person", "nobody of that name"]) == 1
    monkeypatch.setenv("NIGHTSHIFT_TOKEN", anna.token)
    assert main(["stop", "fleet"]) == 1

"""Caps changed over HTTP, on turns that a real worker has parked for want of money."""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from shared.values import Role
from tests.api.serving import Api, Person
from tests.ground import Ground, Rehearsal, ground

UNKNOWN = "01900000-0000-7000-8000-000000000000"
TINY = 0.0001


@pytest.fixture
def worker(api: Api, provider: Rehearsal, tmp_path: Path) -> Generator[Ground]:
    provider.reset()
    settings = api.settings
    with ground(settings.database_url, settings.redis_url, provider.url, tmp_path) as made:
        yield made


def _cap(person: Person, path: str, usd: Any) -> httpx.Response:
    return person.http.patch(f"/v1/{path}", json={"cap_usd": usd})


def _short(worker: Ground, person: Person, audience: str = "private", **caps: Any) -> dict[str, Any]:
    """A turn that waits for money, as its person sees it. `caps` are of the `turn` and the `session`."""
    session = person.session(audience=audience, **({"cap_usd": caps["session"]} if "session" in caps else {}))
    turn = person.turn(session, **({"cap_usd": caps["turn"]} if "turn" in caps else {}))
    worker.look()
    return person.get(f"/v1/turns/{turn}").json()


def _codes(*answers: httpx.Response) -> list[tuple[int, str]]:
    return [(answer.status_code, answer.json()["code"]) for answer in answers]


def test_a_turn_says_which_caps_it_waits_for_and_goes_on_with_what_it_says_is_enough(
    worker: Ground, api: Api, anna: Person
) -> None:
    found = _short(worker, anna, turn=TINY, session=0.001)
    assert (found["status"], found["parked_on"], found["waiting"]["on"]) == ("parked", "money", "money")
    assert found["waiting"]["until"] > found["waiting"]["since"]
    of_turn, of_session = found["waiting"]["money"]
    needs = of_turn["needs_usd"]
    assert of_turn == {
        "cap": "turn", "id": found["id"], "cap_usd": TINY, "spent_usd": 0.0, "promised_usd": 0.0, "left_usd": TINY,
        "needs_usd": needs, "enough_usd": of_turn["enough_usd"],
    }  # fmt: skip
    assert (of_session["cap"], of_session["id"], of_session["left_usd"]) == ("session", found["session_id"], 0.001)
    assert needs <= of_turn["enough_usd"] <= needs + TINY

    half = _cap(anna, f"turns/{found['id']}", of_turn["enough_usd"]).json()
    assert (half["status"], half["cap_usd"]) == ("parked", of_turn["enough_usd"])
    assert [one["cap"] for one in half["waiting"]["money"]] == ["session"]
    whole = _cap(anna, f"sessions/{found['session_id']}", of_session["enough_usd"])
    assert (whole.status_code, whole.json()["cap_usd"]) == (200, of_session["enough_usd"])
    assert anna.get(f"/v1/turns/{found['id']}").json()["status"] == "queued"
    worker.look()
    assert anna.get(f"/v1/turns/{found['id']}").json()["status"] == "done"
    told = api.rows("select principal, action from audit where subject = any(%s)", [found["id"], found["session_id"]])
    assert {(line["principal"], line["action"]) for line in told} == {(anna.id, "cap.turn"), (anna.id, "cap.session")}


def test_whose_money_it_is_and_an_admin_may_raise_and_nobody_else(
    worker: Ground, api: Api, anna: Person, ben: Person, admin: Person
) -> None:
    session = anna.session(audience="team", cap_usd=1)
    turn = ben.turn(session, cap_usd=TINY)
    worker.look()
    carla, vera = api.person("carla", Role.APPROVER), api.person("vera", Role.VIEWER)
    paths = (f"turns/{turn}", f"sessions/{session}")
    assert _codes(*(_cap(carla, path, 2) for path in paths)) == [(403, "not_yours")] * 2
    assert {status for status, _ in _codes(*(_cap(vera, path, 2) for path in paths))} == {403}
    assert _codes(_cap(ben, paths[1], 2)) == [(403, "not_yours")]
    assert anna.get(f"/v1/turns/{turn}").json()["parked_on"] == "money"
    for person, path in ((ben, paths[0]), (anna, paths[0]), (admin, paths[0]), (anna, paths[1]), (admin, paths[1])):
        assert _cap(person, path, 2).status_code == 200
    assert anna.get(f"/v1/turns/{turn}").json()["status"] == "queued"


def test_the_cap_of_what_one_may_not_see_is_not_there(worker: Ground, anna: Person, ben: Person, admin: Person) -> None:
    found = _short(worker, anna, turn=TINY)
    for person in (ben, admin):
        hidden = [_cap(person, path, 1) for path in (f"turns/{found['id']}", f"sessions/{found['session_id']}")]
        unknown = [_cap(person, path, 1) for path in (f"turns/{UNKNOWN}", f"sessions/{UNKNOWN}")]
        assert [one.content for one in hidden] == [one.content for one in unknown]
        assert _codes(*hidden) == [(404, "not_found")] * 2


@pytest.mark.parametrize("body", [{}, {"cap_usd": 0}, {"cap_usd": -1}, {"cap_usd": "x"}, {"cap_usd": 1, "b": 2}, []])
def test_a_cap_that_is_none_is_refused(anna: Person, body: Any) -> None:
    session = anna.session()
    turn = anna.turn(session)
    for path in (f"turns/{turn}", f"sessions/{session}"):
        answer = anna.http.patch(f"/v1/{path}", json=body)
        assert answer.status_code == 422, answer.text


def test_a_session_that_stands_is_kept_warm_from_now_on_by_whose_money_it_is(
    api: Api, anna: Person, ben: Person, admin: Person
) -> None:
    session = anna.session(audience="team", cap_usd=1)
    path = f"/v1/sessions/{session}"

    def warm(person: Person, wanted: Any) -> httpx.Response:
        return person.http.patch(path, json={"keep_warm": wanted})

    assert _codes(warm(ben, True)) == [(403, "not_yours")]
    assert anna.get(path).json()["cache"]["keep_warm"] is False
    kept = warm(anna, True).json()
    assert (kept["cache"]["keep_warm"], kept["cap_usd"]) == (True, 1.0), "what is not given stays"
    assert warm(anna, True).json()["cache"]["keep_warm"]
    assert not warm(admin, False).json()["cache"]["keep_warm"]
    told = api.rows("select principal, action from audit where subject = %s order by id", session)
    assert [(line["principal"], line["action"]) for line in told] == [
        (anna.id, "session.keep_warm"), (admin.id, "session.let_cool"),
    ]  # fmt: skip
    assert [warm(anna, wrong).status_code for wrong in ("yes", 1, None)] == [422] * 3
    private = f"/v1/sessions/{anna.session()}"
    assert ben.http.patch(private, json={"keep_warm": True}).status_code == 404


def test_a_turn_that_is_over_has_no_cap_to_raise(worker: Ground, anna: Person) -> None:
    found = _short(worker, anna, turn=TINY)
    anna.post(f"/v1/turns/{found['id']}/cancel").raise_for_status()
    assert _codes(_cap(anna, f"turns/{found['id']}", 1)) == [(409, "turn_over")]
    assert _cap(anna, f"sessions/{found['session_id']}", None).json()["cap_usd"] is None


def test_of_two_who_raise_a_turns_cap_at_once_both_stand_in_the_audit_and_it_goes_on_once(
    worker: Ground, provider: Rehearsal, api: Api, anna: Person, admin: Person
) -> None:
    found = _short(worker, anna, "team", turn=TINY)
    with ThreadPoolExecutor(2) as pool:
        path = f"turns/{found['id']}"
        asked = [pool.submit(_cap, person, path, usd) for person, usd in ((anna, 5), (admin, 7))]
        assert [one.result().status_code for one in asked] == [200, 200]
    lines = [
        line["detail"] for line in api.rows("select detail from audit where subject = %s order by id", found["id"])
    ]
    last = anna.get(f"/v1/turns/{found['id']}").json()
    assert (last["status"], last["cap_usd"]) in [("queued", 5), ("queued", 7)]
    assert [line.split(" to ")[0] for line in lines] == ["from $0.0001", f"from ${12 - last['cap_usd']:g}"]
    worker.look()
    assert anna.get(f"/v1/turns/{found['id']}").json()["status"] == "done"
    assert len(provider.ledger()) == 1

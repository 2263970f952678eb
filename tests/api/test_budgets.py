"""Shared caps over HTTP: who sets them, who sees what, and that what waits goes on."""

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


@pytest.fixture(autouse=True)
def nothing_set(api: Api) -> None:
    api.execute("delete from budget_caps")
    api.execute("delete from budgets")


@pytest.fixture
def worker(api: Api, provider: Rehearsal, tmp_path: Path) -> Generator[Ground]:
    provider.reset()
    settings = api.settings
    with ground(settings.database_url, settings.redis_url, provider.url, tmp_path) as made:
        yield made


def _set(person: Person, path: str, usd: Any, **more: Any) -> httpx.Response:
    return person.http.put(f"/v1/budgets/{path}", json={"cap_usd": usd, **more})


def _codes(*answers: httpx.Response) -> list[tuple[int, str]]:
    return [(answer.status_code, answer.json()["code"]) for answer in answers]


def _job(person: Person) -> dict[str, Any]:
    made = person.http.post("/v1/jobs", json={"name": f"news of {person.id}", "cron": "0 6 * * *", "prompt": "go"})
    return made.raise_for_status().json()


def test_an_admin_sets_raises_and_takes_away_the_teams_cap(api: Api, admin: Person) -> None:
    made = _set(admin, "team/team/month", 100).raise_for_status().json()
    assert (made["scope"], made["subject"], made["cap_usd"], made["spent_usd"], made["percent"]) == (
        "team", "team", 100, 0, 0,
    )  # fmt: skip
    assert made["until"] > made["window"]
    assert _set(admin, "team/team/month", 150).json()["left_usd"] == 150
    assert _set(admin, "team/team/month", None).json()["cap_usd"] is None
    assert admin.get("/v1/budgets").json()["items"] == []
    lines = api.rows("select detail from audit where action = 'cap.budget' and principal = %s order by id", admin.id)
    assert [line["detail"] for line in lines] == ["from none to $100", "from $100 to $150", "from $150 to none"]


def test_of_two_who_raise_a_cap_at_once_the_second_is_told(admin: Person) -> None:
    _set(admin, "team/team/month", 10).raise_for_status()
    assert _set(admin, "team/team/month", 20, was_usd=10).status_code == 200
    late = _set(admin, "team/team/month", 30, was_usd=10)
    assert _codes(late) == [(409, "cap_changed")]
    assert "it is $20" in late.json()["detail"]
    assert _codes(_set(admin, "team/team/day", 5, was_usd=1)) == [(409, "cap_changed")]
    assert _set(admin, "team/team/day", 5, was_usd=None).status_code == 200


def test_of_two_who_raise_a_cap_in_the_same_moment_one_is_told_and_the_other_holds(admin: Person) -> None:
    _set(admin, "team/team/month", 10).raise_for_status()
    with ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(_set, admin, "team/team/month", usd, was_usd=10) for usd in (20, 30)]
        answers = [one.result() for one in asked]
    assert sorted(answer.status_code for answer in answers) == [200, 409]
    (held,) = [answer.json()["cap_usd"] for answer in answers if answer.status_code == 200]
    assert admin.get("/v1/budgets").json()["items"][0]["cap_usd"] == held


def test_a_member_sees_the_teams_cap_their_own_and_their_jobs_and_sets_only_their_jobs(
    anna: Person, ben: Person, admin: Person
) -> None:
    job, others = _job(anna), _job(ben)
    for path in ("team/team/month", "person/*/day", f"person/{anna.id}/day", f"person/{ben.id}/day"):
        assert _set(admin, path, 10).status_code == 200
        assert _codes(_set(anna, path, 20)) == [(403, "not_yours")]
    assert _set(anna, f"job/{job['id']}/day", 1).status_code == 200
    assert _set(admin, f"job/{others['id']}/day", 1).status_code == 200
    assert _codes(_set(anna, f"job/{others['id']}/day", 2), _set(anna, "job/*/day", 2)) == [(403, "not_yours")] * 2
    seen = [(row["scope"], row["subject"]) for row in anna.get("/v1/budgets").json()["items"]]
    assert sorted(seen) == sorted([("team", "team"), ("person", "*"), ("person", str(anna.id)), ("job", job["id"])])
    assert len(admin.get("/v1/budgets").json()["items"]) == 6


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("team/team/month", {}, 422),
        ("team/team/month", {"cap_usd": -1}, 422),
        ("team/team/month", {"cap_usd": "NaN"}, 422),
        ("team/team/month", {"cap_usd": 1, "colour": 2}, 422),
        ("team/others/month", {"cap_usd": 1}, 422),
        ("team/team/week", {"cap_usd": 1}, 422),
        ("fleet/team/month", {"cap_usd": 1}, 422),
        ("person/nobody/day", {"cap_usd": 1}, 404),
        ("job/nothing/day", {"cap_usd": 1}, 404),
    ],
)
def test_a_cap_that_is_none_is_refused(admin: Person, path: str, body: Any, status: int) -> None:
    assert admin.http.put(f"/v1/budgets/{path}", json=body).status_code == status
    assert admin.get("/v1/budgets").json()["items"] == []


def test_a_viewer_sets_nothing_and_a_stranger_sees_nothing(api: Api) -> None:
    vera = api.person("vera", Role.VIEWER)
    assert _set(vera, "team/team/month", 1).status_code == 403
    assert httpx.get(f"{api.url}/v1/budgets").status_code == 401


def test_a_cap_of_zero_lets_nothing_be_spent_and_a_raise_lets_it_go_on(
    worker: Ground, provider: Rehearsal, anna: Person, admin: Person
) -> None:
    _set(admin, "person/*/day", 0).raise_for_status()
    turn = anna.turn(anna.session())
    worker.look()
    found = anna.get(f"/v1/turns/{turn}").json()
    assert (found["status"], found["parked_on"], provider.ledger()) == ("parked", "money", [])
    (short,) = found["waiting"]["budgets"]
    assert (short["scope"], short["subject"], short["cap_usd"], short["left_usd"]) == ("person", str(anna.id), 0, 0)
    assert _set(admin, "person/*/day", short["enough_usd"]).status_code == 200
    assert worker.one("select has_room(%s) as room", turn)["room"]
    worker.execute(
        "update turns set status = 'queued', parked_on = null, parked_at = null, wake_at = null where id = %s", turn
    )
    worker.look()
    assert anna.get(f"/v1/turns/{turn}").json()["status"] == "done"
    own = next(row for row in anna.get("/v1/budgets").json()["items"] if row["subject"] == str(anna.id))
    assert own["spent_usd"] == pytest.approx(anna.get(f"/v1/turns/{turn}").json()["cost_usd"])


def test_the_usage_of_days_has_every_kind_of_token_and_is_an_admins(
    worker: Ground, provider: Rehearsal, anna: Person, admin: Person
) -> None:
    day = worker.one("select to_char(clock_now() at time zone 'UTC', 'YYYY-MM-DD') as day")["day"]
    path = "/v1/ledger/usage"
    model = "claude-opus-4-8"  # of no other test here
    turn = anna.turn(anna.session(model=model))
    worker.look()
    assert anna.get(f"/v1/turns/{turn}").json()["status"] == "done"
    (row,) = [row for row in admin.get(path, since=day, until=day).json()["items"] if row["model"] == model]
    ledger = provider.ledger()
    assert (row["day"], row["provider"], row["spent"]["calls"]) == (day, "anthropic", len(ledger))
    assert row["spent"]["tokens"]["input"] == sum(call["input"] for call in ledger)
    for kind in ("cache_write_5m", "cache_write_1h"):
        assert row["spent"][kind] == sum(call[kind] for call in ledger)
    assert anna.get(path, since=day, until=day).status_code == 403
    for until in ("2020-01-01", "2099-01-01"):
        assert admin.get(path, since=day, until=until).json()["code"] == "input_invalid"
    (by_provider,) = admin.get("/v1/ledger", by="provider").json()["items"]
    assert by_provider["key"] == "anthropic"

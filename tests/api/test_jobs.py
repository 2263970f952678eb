"""Jobs over HTTP: what may stand in one, when it comes due, running one by hand."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tests.api.serving import Api, Person

JOB: dict[str, Any] = {"cron": "30 6 * * 1-5", "zone": "Europe/Berlin", "prompt": "Write the brief."}
_COUNT = iter(range(10_000))


def _job(person: Person, **more: Any) -> dict[str, Any]:
    answer = person.post("/v1/jobs", {**JOB, "name": f"job {next(_COUNT)}", **more})
    assert answer.status_code == 201, answer.text
    return answer.json()


def test_a_job_is_stored_with_its_zone_and_its_next_instant(api: Api, anna: Person) -> None:
    job = _job(anna, cap_usd=2, tail="Since yesterday.")
    due = datetime.fromisoformat(job["next_at"]).astimezone(ZoneInfo("Europe/Berlin"))
    assert (due.hour, due.minute) == (6, 30)
    assert due.weekday() < 5
    assert {
        "zone": "Europe/Berlin",
        "paused": False,
        "audience": "team",
        "cap_usd": 2.0,
        "mine": True,
    }.items() <= job.items()
    (row,) = api.rows(
        "select p.kind, p.name from jobs j join principals p on p.id = j.principal where j.id = %s", job["id"]
    )
    assert row == {"kind": "job", "name": f"job:{job['id']}"}
    assert anna.get(f"/v1/jobs/{job['id']}").json() == job


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"cron": "0 0 30 2 *"}, "cron_never_fires"),
        ({"cron": "61 * * * *"}, "cron_invalid"),
        ({"cron": "* * * *"}, "cron_invalid"),
        ({"cron": "@never"}, "cron_invalid"),
        ({"zone": "Mars/Olympus"}, "zone_unknown"),
        ({"zone": "../etc/passwd"}, "zone_unknown"),
        ({"zone": ""}, "zone_unknown"),
        ({"prompt": "  "}, "input_invalid"),
        ({"name": " "}, "input_invalid"),
        ({"deadline_s": 0}, "input_invalid"),
        ({"colour": "red"}, "input_invalid"),
        ({"deliver_session": "01900000-0000-7000-8000-000000000000"}, "not_found"),
    ],
)
def test_a_wrong_job_is_refused_by_name(anna: Person, fields: dict[str, Any], code: str) -> None:
    answer = anna.post("/v1/jobs", {**JOB, "name": f"wrong {next(_COUNT)}", **fields})
    assert answer.status_code in {404, 422}
    assert answer.json()["code"] == code
    assert answer.json()["detail"]
    job = _job(anna)
    changed = anna.http.patch(f"/v1/jobs/{job['id']}", json=fields)
    assert changed.json()["code"] == code
    assert anna.get(f"/v1/jobs/{job['id']}").json() == job


def test_a_change_of_rhythm_moves_the_next_instant_and_a_pause_keeps_it(anna: Person) -> None:
    job = _job(anna)
    path = f"/v1/jobs/{job['id']}"
    hourly = anna.http.patch(path, json={"cron": "@hourly", "cap_usd": 1}).json()
    assert hourly["next_at"] < job["next_at"]
    assert hourly["cap_usd"] == 1.0
    paused = anna.http.patch(path, json={"paused": True, "cap_usd": None}).json()
    assert (paused["paused"], paused["cap_usd"], paused["next_at"]) == (True, None, hourly["next_at"])
    assert anna.http.patch(path, json={"paused": False}).json()["paused"] is False
    refused = anna.http.patch(path, json={"name": None})
    assert (refused.status_code, refused.json()["code"]) == (422, "input_invalid")


def test_names_are_unique_until_a_job_is_removed(anna: Person) -> None:
    job = _job(anna, name="the brief")
    again = anna.post("/v1/jobs", {**JOB, "name": "the brief"})
    assert (again.status_code, again.json()["code"]) == (409, "job_name_taken")
    assert anna.http.delete(f"/v1/jobs/{job['id']}").status_code == 204
    assert anna.http.delete(f"/v1/jobs/{job['id']}").status_code == 404
    assert anna.get(f"/v1/jobs/{job['id']}").status_code == 404
    _job(anna, name="the brief")


def test_a_run_by_hand_is_a_due_tick(api: Api, anna: Person) -> None:
    job = _job(anna)
    runs = [anna.post(f"/v1/jobs/{job['id']}/run").json() for _ in range(3)]
    assert {run["status"] for run in runs} == {"due"}
    assert {run["manual"] for run in runs} == {True}
    assert {run["turn_id"] for run in runs} == {None}
    found = anna.get(f"/v1/jobs/{job['id']}/runs", limit=2).json()
    assert [run["id"] for run in found["items"]] == [runs[2]["id"], runs[1]["id"]]
    rest = anna.get(f"/v1/jobs/{job['id']}/runs", limit=2, cursor=found["next"]).json()
    assert ([run["id"] for run in rest["items"]], rest["next"]) == ([runs[0]["id"]], None)


def test_a_private_job_is_its_owners_and_a_team_job_is_its_owners_to_change(
    anna: Person, ben: Person, admin: Person
) -> None:
    private, team = _job(anna, audience="private"), _job(anna)
    for person in (ben, admin):
        assert person.get(f"/v1/jobs/{private['id']}").status_code == 404
        assert person.http.patch(f"/v1/jobs/{private['id']}", json={"paused": True}).status_code == 404
        assert person.post(f"/v1/jobs/{private['id']}/run").status_code == 404
    assert ben.get(f"/v1/jobs/{team['id']}").json()["mine"] is False
    refused = ben.http.patch(f"/v1/jobs/{team['id']}", json={"paused": True})
    assert (refused.status_code, refused.json()["code"]) == (403, "not_yours")
    assert admin.http.patch(f"/v1/jobs/{team['id']}", json={"paused": True}).json()["paused"] is True


@pytest.mark.parametrize("field", ["folder", "workspace", "deliver_file"])
def test_paths_of_the_host_are_an_admins_and_absolute(anna: Person, admin: Person, field: str) -> None:
    body = {**JOB, "name": f"paths {next(_COUNT)}"}
    assert anna.post("/v1/jobs", {**body, field: "/srv/notes"}).json()["code"] == "role_insufficient"
    assert admin.post("/v1/jobs", {**body, field: "notes"}).json()["code"] == "input_invalid"
    assert admin.post("/v1/jobs", {**body, field: "/srv/../etc"}).json()["code"] == "input_invalid"
    assert admin.post("/v1/jobs", {**body, field: "/srv/notes"}).json()[field] == "/srv/notes"


def test_explain_lists_instants_in_local_time_and_utc_across_a_clock_change(api: Api, anna: Person) -> None:
    job = _job(anna, cron="30 2 * * *")
    api.execute("update test_clock set offset_s = extract(epoch from timestamptz '2027-03-27 12:00Z' - now()),"
                " target_s = extract(epoch from timestamptz '2027-03-27 12:00Z' - now())")  # fmt: skip
    try:
        found = anna.get(f"/v1/jobs/{job['id']}/explain", n=2).json()
    finally:
        api.execute("update test_clock set offset_s = 0, target_s = 0")
    assert found["instants"] == [
        {"local": "2027-03-28T03:00:00+02:00", "utc": "2027-03-28T01:00:00Z"},
        {"local": "2027-03-29T02:30:00+02:00", "utc": "2027-03-29T00:30:00Z"},
    ]
    assert "clock is put forward" in found["text"] or "put forward" in found["text"]


def test_breakers_of_a_job_are_set_explained_and_taken_away(api: Api, anna: Person) -> None:
    job = _job(anna)
    assert (job["stop_same"], job["stop_dearer"], job["paused_why"]) == (None, None, None)
    path = f"/v1/jobs/{_job(anna, stop_same=5, stop_dearer=2.5)['id']}"
    job = anna.get(path).json()
    assert (job["stop_same"], job["stop_dearer"]) == (5, 2.5)
    text = anna.get(f"{path}/explain").json()["text"]
    assert "5 of its runs in a row have said the same" in text
    assert "cost 2.5 times as much as the five before" in text
    api.execute("update jobs set paused_at = clock_now(), paused_why = 'its last 5 runs said the same' where id = %s",
                job["id"])  # fmt: skip
    assert anna.get(path).json()["paused_why"] == "its last 5 runs said the same"
    assert "paused since its last 5 runs" in anna.get(f"{path}/explain").json()["text"]
    changed = anna.http.patch(path, json={"paused": False, "stop_same": None}).json()
    assert (changed["paused"], changed["paused_why"], changed["stop_same"]) == (False, None, None)
    (row,) = api.rows("select watched_from is not null as anew from jobs where id = %s", job["id"])
    assert row["anew"]
    for wrong in ({"stop_same": 1}, {"stop_same": "many"}, {"stop_dearer": 1}, {"stop_dearer": -2}):
        assert anna.http.patch(path, json=wrong).json()["code"] == "input_invalid"

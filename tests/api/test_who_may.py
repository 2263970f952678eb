"""Tokens, roles, and what one may not see: it does not exist."""

from __future__ import annotations

import time
from pathlib import Path

import httpx
import pytest

from shared.values import Role
from tests.api.serving import Api, Person

UNKNOWN = "01900000-0000-7000-8000-000000000000"
READS = (
    "sessions/{s}", "sessions/{s}/messages", "sessions/{s}/turns", "turns/{t}", "turns/{t}/calls", "turns/{t}/events",
    "turns/{t}/replay", "sessions/{s}/artifacts/{t}",
)  # fmt: skip
WRITES = ("sessions/{s}/turns", "turns/{t}/steer", "turns/{t}/cancel")


@pytest.mark.parametrize("header", [None, "", "Bearer", "Basic YTpi", "Bearer ns_wrong", "Bearer \xff\xfe"])
def test_without_a_good_token_nothing_is_served(api: Api, header: str | None) -> None:
    headers = [] if header is None else [(b"authorization", header.encode("latin-1"))]
    for path in ("/v1/sessions", "/v1/jobs", "/v1/ledger", "/v1/approvals", f"/v1/turns/{UNKNOWN}/events"):
        answer = httpx.get(api.url + path, headers=headers)
        assert answer.status_code == 401, path
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.headers["www-authenticate"] == "Bearer"
        assert answer.json()["code"] in {"token_missing", "token_invalid"}
    assert httpx.post(f"{api.url}/v1/sessions", headers=headers, json={"bad": 1}).status_code == 401


def test_a_viewer_reads_and_changes_nothing(api: Api, anna: Person) -> None:
    viewer = api.person("vera", Role.VIEWER)
    session = anna.session(audience="team")
    turn = anna.turn(session)
    assert viewer.get(f"/v1/sessions/{session}").status_code == 200
    assert viewer.get(f"/v1/turns/{turn}").status_code == 200
    for path in ("sessions", "jobs", *(one.format(s=session, t=turn) for one in WRITES)):
        answer = viewer.post(f"/v1/{path}", {})
        assert (answer.status_code, answer.json()["code"]) == (403, "role_insufficient"), path


def test_what_one_may_not_see_answers_exactly_as_what_is_not_there(anna: Person, ben: Person, admin: Person) -> None:
    session = anna.session()
    turn = anna.turn(session)
    for person in (ben, admin):
        for path in READS:
            hidden = person.get("/v1/" + path.format(s=session, t=turn))
            unknown = person.get("/v1/" + path.format(s=UNKNOWN, t=UNKNOWN))
            assert (hidden.status_code, hidden.content) == (404, unknown.content), path
        for path in WRITES:
            hidden = person.post(
                "/v1/" + path.format(s=session, t=turn), {"input": "x"} if "cancel" not in path else {}
            )
            assert (hidden.status_code, hidden.json()["code"]) == (404, "not_found"), path
        assert session not in person.get("/v1/sessions", limit=200).text


@pytest.mark.parametrize("wrong", ["nonsense", "1", "%00", "..%2f..", "null", "{}", "0" * 500])
def test_an_id_that_is_none_is_an_unknown_one(anna: Person, wrong: str) -> None:
    for path in ("sessions/{}", "turns/{}", "jobs/{}", "turns/{}/events", "turns/{}/replay", "jobs/{}/runs"):
        answer = anna.get("/v1/" + path.format(wrong))
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found"), path


def test_a_team_session_is_everyones_and_named_people_see_theirs(api: Api, anna: Person, ben: Person) -> None:
    carla = api.person("carla")
    team = anna.session(audience="team", title="for all")
    some = anna.session(audience="people", people=[str(ben.id)])
    hers = anna.session()

    def seen(person: Person) -> set[str]:
        return {row["id"] for row in person.get("/v1/sessions", limit=200).json()["items"]} & {team, some, hers}

    assert (seen(anna), seen(ben), seen(carla)) == ({team, some, hers}, {team, some}, {team})
    assert carla.get(f"/v1/sessions/{some}").status_code == 404
    assert ben.turn(some)
    assert carla.turn(team)


def test_a_revoked_token_is_refused_within_a_second_or_so(api: Api, anna: Person) -> None:
    assert anna.get("/v1/sessions").status_code == 200
    api.execute("update tokens set revoked_at = clock_now() where principal = %s", anna.id)
    statuses: set[int] = set()
    end = time.monotonic() + 1.5
    while time.monotonic() < end and 401 not in statuses:
        statuses.add(anna.get("/v1/sessions").status_code)
    assert 401 in statuses


def test_a_folder_of_the_host_is_an_admins_to_attach(anna: Person, admin: Person) -> None:
    refused = anna.post("/v1/sessions", {"folder": "/etc"})
    assert (refused.status_code, refused.json()["code"]) == (403, "role_insufficient")
    assert admin.post("/v1/sessions", {"folder": "/srv/notes"}).json()["folder"] == "/srv/notes"


def test_nothing_that_a_stack_keeps_in_its_home_can_be_attached(
    api: Api, anna: Person, admin: Person, tmp_path: Path
) -> None:
    home = api.settings.home
    (home / "postgres").mkdir(exist_ok=True)
    (tmp_path / "notes").symlink_to(home / "postgres")
    inside = [home, home / "postgres", home / "not yet", tmp_path / "notes", tmp_path / "notes" / "base"]
    for path in map(str, inside):
        refused = admin.post("/v1/sessions", {"folder": path})
        assert (refused.status_code, refused.json()["code"]) == (422, "path_in_home"), path
        assert anna.post("/v1/sessions", {"folder": path}).json()["code"] == "role_insufficient"
    assert admin.post("/v1/sessions", {"folder": "notes"}).json()["code"] == "input_invalid"
    beside = str(home.with_name(f"{home.name}-too"))
    for path in (beside, str(home.parent)):  # what lies in a home above which a folder is attached, the tools refuse
        assert admin.post("/v1/sessions", {"folder": path}).json()["folder"] == path


@pytest.mark.parametrize(("field", "own"), [("folder", None), ("workspace", "workspaces"), ("deliver_file", "briefs")])
def test_a_jobs_paths_lie_outside_the_stacks_home_but_for_what_is_made_there(
    api: Api, admin: Person, field: str, own: str | None
) -> None:
    home = api.settings.home
    body = {"cron": "@daily", "prompt": "Write.", "name": f"home {field}"}
    for path in (home, home / "postgres", home / "workspaces" / ".." / "logs"):
        refused = admin.post("/v1/jobs", {**body, field: str(path)})
        assert refused.json()["code"] in {"path_in_home", "input_invalid"}, refused.text
    a_file = home.with_name(f"{home.name}-{field}.md")
    a_file.write_text("a brief")
    refused = admin.post("/v1/jobs", {**body, field: str(a_file)})
    assert (refused.status_code, refused.json()["code"]) == (422, "input_invalid")
    assert "name a folder" in refused.text
    job = admin.post("/v1/jobs", {**body, field: str(home / own / "mine") if own else None}).json()
    changed = admin.http.patch(f"/v1/jobs/{job['id']}", json={field: str(home / "logs")})
    assert (changed.status_code, changed.json()["code"]) == (422, "path_in_home")

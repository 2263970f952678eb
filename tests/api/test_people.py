"""People and tokens by HTTP: an admin's to give and take, shown once, and never the last admin's."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Generator
from pathlib import Path

import httpx
import pytest

from deploy.local.servers import Servers
from shared.values import Role
from tests.api.conftest import fresh_database
from tests.api.hand import Hand
from tests.api.serving import Api, Person, serving, settings_for

UNKNOWN = "01900000-0000-7000-8000-000000000000"


@pytest.fixture
def own(servers: Servers, template: str, tmp_path: Path) -> Generator[Api]:
    """An API whose people are all of this test."""
    with (
        fresh_database(servers, template) as url,
        serving(settings_for(url, servers.valkey.url, tmp_path)) as running,
    ):
        yield running


def _code(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


def test_a_person_is_added_signs_in_changes_and_goes(api: Api, admin: Person) -> None:
    made = admin.post("/v1/people", {"name": "ada of the house", "role": "approver"})
    assert (made.status_code, made.json()["role"], made.json()["tokens"]) == (201, "approver", 0)
    person = made.json()["id"]
    assert _code(admin.post("/v1/people", {"name": "ada of the house", "role": "admin"})) == (409, "name_taken")
    token = admin.post("/v1/tokens", {"person": person, "label": "laptop"}).json()
    ada = api.client(token["token"])
    assert ada.get("/v1/approvals").status_code == 200
    assert admin.http.patch(f"/v1/people/{person}", json={"role": "viewer"}).json()["role"] == "viewer"
    time.sleep(1.1)
    assert ada.post("/v1/sessions", json={}).status_code == 403
    assert admin.http.delete(f"/v1/tokens/{token['id']}").json()["revoked_at"] is not None
    time.sleep(1.1)
    assert ada.get("/v1/sessions").status_code == 401
    assert admin.http.patch(f"/v1/people/{person}", json={"disabled": True}).json()["disabled"] is True
    assert _code(admin.post("/v1/tokens", {"person": person})) == (409, "person_disabled")
    rows = api.rows("select action from audit where principal = %s order by id", admin.id)
    assert [row["action"] for row in rows] == [
        "people.added", "tokens.added", "people.role", "tokens.revoked", "people.disabled",
    ]  # fmt: skip


def test_what_a_disabled_person_has_queued_is_cancelled_and_told_in_the_audit(
    api: Api, admin: Person, anna: Person, ben: Person, hand: Hand
) -> None:
    session = anna.session(audience="team")
    running, queued, bens = anna.turn(session), anna.turn(session), ben.turn(session)
    alone = anna.turn(anna.session())
    hand.claim(running)
    assert admin.http.patch(f"/v1/people/{anna.id}", json={"disabled": True}).json()["disabled"] is True
    rows = api.rows("select id::text, status from turns where id = any(%s::uuid[])", [running, queued, bens, alone])
    assert {row["id"]: row["status"] for row in rows} == {
        running: "running", queued: "cancelled", bens: "queued", alone: "cancelled",
    }  # fmt: skip
    told = api.rows("select principal, subject, detail from audit where action = 'turn.cancelled' order by id")
    assert [(line["principal"], line["subject"]) for line in told] == [(admin.id, queued), (admin.id, alone)]
    assert "disabled" in told[0]["detail"]


def test_a_token_is_shown_once_and_stored_nowhere(api: Api, admin: Person, anna: Person) -> None:
    first, again = (admin.post("/v1/tokens", {"person": str(anna.id)}, key="t") for _ in range(2))
    token = first.json()["token"]
    assert (again.status_code, again.json()["token"], again.json()["id"]) == (201, None, first.json()["id"])
    listed = admin.get("/v1/tokens", person=str(anna.id))
    assert first.json()["id"] in listed.text
    assert token not in listed.text
    stored = api.rows(
        "select answer from idempotency union all select detail from audit union all select label from tokens"
    )
    assert not [row for row in stored if token in str(row)]
    (row,) = api.rows("select digest from tokens where id = %s", first.json()["id"])
    assert bytes(row["digest"]) == hashlib.sha256(token.encode()).digest()


def test_who_is_no_admin_has_no_say_in_it(api: Api, anna: Person) -> None:
    owen = api.person("owen", Role.APPROVER)
    for person in (anna, owen):
        for answer in (
            person.get("/v1/people"), person.get("/v1/tokens"),
            person.post("/v1/people", {"name": "x", "role": "admin"}),
            person.post("/v1/tokens", {"person": str(person.id)}),
            person.http.patch(f"/v1/people/{person.id}", json={"role": "admin"}),
            person.http.delete(f"/v1/tokens/{UNKNOWN}"),
        ):  # fmt: skip
            assert _code(answer) == (403, "role_insufficient")


def test_what_is_not_there_and_what_is_no_word_for_it(admin: Person) -> None:
    for wrong in (UNKNOWN, "nonsense", "%00"):
        assert _code(admin.http.patch(f"/v1/people/{wrong}", json={"role": "member"})) == (404, "not_found")
        assert _code(admin.http.delete(f"/v1/tokens/{wrong}")) == (404, "not_found")
    assert _code(admin.post("/v1/tokens", {"person": UNKNOWN})) == (404, "not_found")
    for body in (
        {},
        {"name": " "},
        {"name": "x", "role": "boss"},
        {"name": "x", "kind": "job"},
        {"name": "x", "id": 1},
    ):
        assert _code(admin.post("/v1/people", body)) == (422, "input_invalid")


def test_two_admins_who_shut_each_other_out_at_once_leave_one(own: Api) -> None:
    for _ in range(5):
        pair = [own.person("admin", Role.ADMIN) for _ in range(2)]
        at = threading.Barrier(2)
        answers: list[httpx.Response] = []

        def shut_out(by: Person, other: Person, at: threading.Barrier = at) -> None:
            at.wait()
            answers.append(by.http.patch(f"/v1/people/{other.id}", json={"disabled": True}))  # noqa: B023 - joined below

        threads = [threading.Thread(target=shut_out, args=(pair[n], pair[1 - n])) for n in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        statuses = sorted(answer.status_code for answer in answers)  # 401: shut out before the request was looked at
        assert statuses in ([200, 409], [200, 401]), [answer.text for answer in answers]
        own.execute("update principals set disabled_at = clock_now(), role = 'member'")


def test_the_last_admin_keeps_role_access_and_token(own: Api) -> None:
    admin = own.person("admin", Role.ADMIN)
    (token,) = admin.get("/v1/tokens").json()["items"]
    for answer in (
        admin.http.patch(f"/v1/people/{admin.id}", json={"role": "member"}),
        admin.http.patch(f"/v1/people/{admin.id}", json={"disabled": True}),
        admin.http.delete(f"/v1/tokens/{token['id']}"),
    ):
        assert _code(answer) == (409, "last_admin")
    assert admin.get("/v1/people").json()["items"][0]["tokens"] == 1

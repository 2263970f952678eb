"""Decisions on tool calls over HTTP, on turns that a real worker has parked."""

from __future__ import annotations

import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest

from shared.values import Role, TurnClass
from tests.api.serving import Api, Person
from tests.api.watching import watching
from tests.ground import Ground, Rehearsal, ground

WRITE: dict[str, Any] = {"name": "write_file", "input": {"path": "a.txt", "content": "alpha"}}
LOOK: dict[str, Any] = {"name": "list_files", "input": {}}
READ: dict[str, Any] = {"name": "read_file", "input": {"path": "a.txt"}}
NOTE: dict[str, Any] = {"name": "todo", "input": {"items": []}}
UNKNOWN = "01900000-0000-7000-8000-000000000000"


@pytest.fixture
def worker(api: Api, provider: Rehearsal, tmp_path: Path) -> Generator[Ground]:
    provider.reset()
    settings = api.settings
    with ground(
        settings.database_url, settings.redis_url, provider.url, tmp_path,
        approve_tools="write_file,list_files:admin,todo:approver:four_eyes,read_file:member", spawn_depth=2,
    ) as made:  # fmt: skip
        yield made


@pytest.fixture
def owen(api: Api) -> Person:
    return api.person("owen", Role.APPROVER)


def _parked(
    worker: Ground, provider: Rehearsal, person: Person, *tools: dict[str, Any], audience: str = "team"
) -> tuple[str, list[str]]:
    """A turn that waits for these calls, and the ids of their requests in call order."""
    session = person.session(audience=audience)
    provider.script([{"text": "I will", "tools": list(tools)}, {"text": "over"}], session=session)
    turn = person.turn(session)
    worker.look()
    found = person.get(f"/v1/turns/{turn}").json()
    assert found["parked_on"] == "approval", found
    return turn, [one["id"] for one in found["waiting"]["approvals"]]


def _decide(person: Person, approval: str, decision: str = "approve", **more: Any) -> httpx.Response:
    key = more.pop("key", None)
    return person.post(f"/v1/approvals/{approval}", {"decision": decision, **more}, key=key)


def _code(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


def test_an_approver_allows_a_call_and_it_runs_once(
    worker: Ground, provider: Rehearsal, api: Api, anna: Person, owen: Person
) -> None:
    turn, (approval,) = _parked(worker, provider, anna, WRITE)
    listed = owen.get("/v1/approvals", status="pending").json()["items"]
    (shown,) = [one for one in listed if one["id"] == approval]
    assert (shown["tool"], shown["turn_id"], shown["requested_by"], shown["may_decide"], shown["cut"]) == (
        "write_file", turn, anna.name, True, False,
    )  # fmt: skip
    assert "alpha" in shown["arguments"]
    assert anna.get(f"/v1/approvals/{approval}").json()["may_decide"] is False

    answer = _decide(owen, approval, note="  go on ")
    assert answer.status_code == 200, answer.text
    assert (answer.json()["status"], answer.json()["decided_by"], answer.json()["note"]) == (
        "approved", owen.name, "go on",
    )  # fmt: skip
    assert anna.get(f"/v1/turns/{turn}").json()["status"] == "queued"
    worker.look()
    assert anna.get(f"/v1/turns/{turn}").json()["answer"] == "over"
    (told,) = [event for event in worker.events(UUID(turn)) if event.kind.value == "approval.decided"]
    assert (told.data["approval"], told.data["decision"], told.data["decided_by"]) == (approval, "approved", owen.name)
    (audited,) = api.rows("select principal, action, detail from audit where subject = %s", approval)
    assert (audited["principal"], audited["action"]) == (owen.id, "approval.approved")
    assert turn in audited["detail"]


def test_the_same_key_decides_once_and_answers_the_same(
    worker: Ground, provider: Rehearsal, api: Api, anna: Person, owen: Person
) -> None:
    _, (approval,) = _parked(worker, provider, anna, WRITE)
    first, again = (_decide(owen, approval, "deny", note="no", key="k") for _ in range(2))
    assert (first.status_code, again.content) == (200, first.content)
    assert again.headers["idempotent-replayed"] == "true"
    assert len(api.rows("select 1 from audit where subject = %s", approval)) == 1


def test_a_decision_that_cannot_be_made_says_why_and_changes_nothing(
    worker: Ground, provider: Rehearsal, api: Api, anna: Person, owen: Person, admin: Person
) -> None:
    _, (write, todo, look) = _parked(worker, provider, owen, WRITE, NOTE, LOOK)
    assert _code(_decide(anna, write)) == (403, "role_insufficient")
    assert _code(_decide(owen, look)) == (403, "role_insufficient")
    assert _code(_decide(owen, todo)) == (403, "four_eyes")
    assert _code(_decide(api.person("vera", Role.VIEWER), write)) == (403, "role_insufficient")
    for scope in ("session", "always"):
        assert _code(_decide(admin, todo, scope=scope)) == (422, "scope_unsupported")  # four eyes look each time
        assert _code(_decide(owen, write, "deny", scope=scope)) == (422, "scope_unsupported")
    for body in (
        {},
        {"decision": "maybe"},
        {"decision": "approve", "for": 1},
        {"decision": "deny", "note": "x" * 2001},
    ):
        assert _code(owen.post(f"/v1/approvals/{write}", body)) == (422, "input_invalid")
    assert {
        row["status"] for row in api.rows("select status from approvals where id = any(%s::uuid[])", [write, todo])
    } == {"pending"}
    assert _decide(owen, write).status_code == 200  # one's own turn, without four eyes
    assert _code(_decide(admin, write, "deny")) == (409, "already_decided")
    assert _decide(admin, todo).status_code == 200
    assert _decide(admin, look).status_code == 200


@pytest.mark.parametrize("wrong", [UNKNOWN, "nonsense", "1", "%00", "null", "0" * 500])
def test_an_unknown_request_is_not_there(owen: Person, wrong: str) -> None:
    assert _code(owen.get(f"/v1/approvals/{wrong}")) == (404, "not_found")
    assert _code(_decide(owen, wrong)) == (404, "not_found")


def test_an_approver_decides_in_a_private_session_and_sees_the_call_and_nothing_else(
    worker: Ground, provider: Rehearsal, api: Api, anna: Person, owen: Person, admin: Person
) -> None:
    turn, (write, look) = _parked(worker, provider, anna, WRITE, LOOK, audience="private")
    session = anna.get(f"/v1/turns/{turn}").json()["session_id"]
    own = anna.get(f"/v1/approvals/{write}").json()
    assert (own["turn_id"], own["session_id"]) == (turn, session)
    shown = owen.get(f"/v1/approvals/{write}").json()
    hidden = {"turn_id": None, "session_id": None, "session_title": None, "may_decide": True}
    assert shown == own | hidden
    assert (shown["tool"], shown["requested_by"], "alpha" in shown["arguments"]) == ("write_file", anna.name, True)
    (listed,) = [one for one in owen.get("/v1/approvals").json()["items"] if one["id"] in (write, look)]
    assert listed == shown
    for text in (owen.get("/v1/approvals").text, owen.get(f"/v1/approvals/{write}").text):
        assert turn not in text
        assert session not in text
    for path in (f"turns/{turn}", f"sessions/{session}", f"sessions/{session}/messages", f"turns/{turn}/events"):
        assert (owen.get(f"/v1/{path}").status_code, admin.get(f"/v1/{path}").status_code) == (404, 404)

    assert _decide(owen, look).content == _decide(owen, UNKNOWN).content  # an admin's to decide
    answer = _decide(owen, write, "deny", note="not this one")
    assert (answer.status_code, answer.json()["status"], answer.json()["turn_id"]) == (200, "denied", None)
    assert _code(_decide(admin, write)) == (409, "already_decided")
    assert _decide(admin, look).status_code == 200
    worker.look()
    assert anna.get(f"/v1/turns/{turn}").json()["status"] == "done"
    audited = api.rows("select principal from audit where subject = any(%s) order by id", [write, look])
    assert [line["principal"] for line in audited] == [owen.id, admin.id]


def test_without_the_role_anothers_private_request_does_not_exist(
    worker: Ground, provider: Rehearsal, api: Api, anna: Person, ben: Person, owen: Person
) -> None:
    _, (approval, confirm) = _parked(worker, provider, anna, WRITE, READ, audience="private")
    vera = api.person("vera", Role.VIEWER)
    for person, ids in ((ben, (approval, confirm)), (owen, (confirm,)), (vera, (approval, confirm))):
        for one in ids:  # what any member may confirm is for those who see the session
            assert person.get(f"/v1/approvals/{one}").content == person.get(f"/v1/approvals/{UNKNOWN}").content
            assert one not in person.get("/v1/approvals").text
    hidden, unknown = (_decide(ben, one) for one in (approval, UNKNOWN))
    assert (hidden.status_code, hidden.content) == (404, unknown.content)
    assert _decide(anna, confirm).status_code == 200


def test_what_is_over_cannot_be_decided(
    worker: Ground, provider: Rehearsal, api: Api, anna: Person, owen: Person
) -> None:
    turn, (approval,) = _parked(worker, provider, anna, WRITE)
    anna.post(f"/v1/turns/{turn}/cancel").raise_for_status()
    assert _code(_decide(owen, approval)) == (409, "approval_over")
    assert owen.get(f"/v1/approvals/{approval}").json()["status"] == "void"
    _, (late,) = _parked(worker, provider, anna, WRITE)
    api.execute("update approvals set expires_at = clock_now() - interval '1 second' where id = %s", late)
    assert _code(_decide(owen, late)) == (409, "approval_over")


def test_the_list_has_the_newest_first_and_a_batch_in_call_order(
    worker: Ground, provider: Rehearsal, anna: Person, owen: Person
) -> None:
    batches = [
        _parked(
            worker,
            provider,
            anna,
            *({"name": "write_file", "input": {"path": f"{n}", "content": "x"}} for n in range(3)),
        )
        for _ in range(2)
    ]
    listed = [one["id"] for one in owen.get("/v1/approvals", status="pending", limit=6).json()["items"]]
    assert listed == [*batches[1][1], *batches[0][1]]
    pages: list[str] = []
    cursor: str | None = None
    for _ in range(3):
        page = owen.get("/v1/approvals", status="pending", limit=2, **({"cursor": cursor} if cursor else {})).json()
        pages += [one["id"] for one in page["items"]]
        cursor = page["next"]
    assert pages == listed
    for approval in listed[:3]:
        _decide(owen, approval, "deny").raise_for_status()
    assert not set(listed[:3]) & {one["id"] for one in owen.get("/v1/approvals", status="pending").json()["items"]}
    assert owen.get("/v1/approvals", status="nonsense").status_code == 422


def test_long_arguments_are_bounded_in_the_list_and_whole_alone(
    worker: Ground, provider: Rehearsal, anna: Person, owen: Person
) -> None:
    long = {"name": "write_file", "input": {"path": "a.txt", "content": "y" * 9_000}}
    _, (approval,) = _parked(worker, provider, anna, long)
    (listed,) = [one for one in owen.get("/v1/approvals").json()["items"] if one["id"] == approval]
    alone = owen.get(f"/v1/approvals/{approval}").json()
    assert (len(listed["arguments"]), listed["cut"], alone["cut"]) == (4_000, True, False)
    assert alone["arguments"].count("y") >= 9_000


def test_approve_deny_and_cancel_at_the_same_instant_have_one_winner(
    worker: Ground, provider: Rehearsal, api: Api, anna: Person, owen: Person, admin: Person
) -> None:
    for _ in range(6):
        turn, (approval,) = _parked(worker, provider, anna, WRITE)
        at = threading.Barrier(3)
        answers: dict[str, httpx.Response] = {}

        def meet(name: str, person: Person, path: str, body: dict[str, Any], at: threading.Barrier = at) -> None:
            at.wait()
            answers[name] = person.post(path, body)  # noqa: B023 - each thread ends within its round

        threads = [
            threading.Thread(target=meet, args=("approve", owen, f"/v1/approvals/{approval}", {"decision": "approve"})),
            threading.Thread(target=meet, args=("deny", admin, f"/v1/approvals/{approval}", {"decision": "deny"})),
            threading.Thread(target=meet, args=("cancel", anna, f"/v1/turns/{turn}/cancel", {})),
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        decided = [name for name in ("approve", "deny") if answers[name].status_code == 200]
        assert len(decided) <= 1, answers
        for name in {"approve", "deny"} - set(decided):
            assert _code(answers[name]) in {(409, "already_decided"), (409, "approval_over")}
        assert answers["cancel"].status_code == 202, answers["cancel"].text
        (row,) = api.rows("select status from approvals where id = %s", approval)
        assert row["status"] == ({"approve": "approved", "deny": "denied"}[decided[0]] if decided else "void")
        worker.look()
        assert anna.get(f"/v1/turns/{turn}").json()["status"] == "cancelled"
        assert len(api.rows("select 1 from audit where subject = %s", approval)) == len(decided)


def test_children_that_each_ask_are_seen_from_their_parent_and_decided_one_by_one(
    worker: Ground, provider: Rehearsal, anna: Person, owen: Person
) -> None:
    session = anna.session(audience="team")
    tasks = [{"goal": f"write {n}: script:child"} for n in range(3)]
    hand_on = {"text": "go", "tools": [{"name": "delegate_task", "input": {"tasks": tasks}}]}
    provider.script([hand_on, {"text": "all in"}], session=session)
    provider.script([{"text": "I will", "tools": [WRITE]}, {"text": "written"}], name="child", repeat=True)
    turn = anna.turn(session)
    worker.look()
    parent = anna.get(f"/v1/turns/{turn}").json()
    assert parent["parked_on"] == "children"
    wanted = parent["waiting"]["approvals"]
    assert len({one["turn_id"] for one in wanted}) == len(wanted) == 3
    assert {one["id"] for one in wanted} <= {
        one["id"] for one in owen.get("/v1/approvals", status="pending").json()["items"]
    }
    for at, one in enumerate(wanted):
        assert _decide(owen, one["id"], "deny" if at else "approve").status_code == 200
    worker.look()
    parent = anna.get(f"/v1/turns/{turn}").json()
    assert (parent["status"], parent["answer"]) == ("done", "all in")
    children = [anna.get(f"/v1/turns/{one['turn_id']}").json()["status"] for one in wanted]
    assert children == ["done"] * 3


def test_what_a_childs_child_asks_is_named_by_the_turn_on_top_and_told_to_who_watches_it(
    worker: Ground, provider: Rehearsal, anna: Person, owen: Person
) -> None:
    """Nothing of it stands on the stream of that turn, which sleeps."""
    session = anna.session(audience="team")

    def hand_on(goal: str) -> dict[str, Any]:
        return {"text": "go", "tools": [{"name": "delegate_task", "input": {"tasks": [{"goal": goal}]}}]}

    provider.script([hand_on("in the middle: script:middle"), {"text": "all in"}], session=session)
    provider.script([hand_on("below: script:below"), {"text": "passed on"}], name="middle")
    provider.script([{"text": "I will", "tools": [WRITE]}, {"text": "written"}], name="below")
    turn = anna.turn(session)
    worker.look_once(TurnClass.INTERACTIVE)
    told: list[dict[str, Any]] = []
    with watching(anna, turn) as events:
        for event in events:
            if event["event"] == "turn.parked":
                assert anna.get(f"/v1/turns/{turn}").json()["waiting"]["approvals"] == []
                worker.look()
            if event["event"] == "snapshot":
                told += event["data"]["turn"]["waiting"]["approvals"]
                break
    (wanted,) = told
    assert wanted["turn_id"] not in (turn, None)
    assert anna.get(f"/v1/turns/{turn}").json()["waiting"]["approvals"] == [wanted]
    assert anna.get(f"/v1/turns/{wanted['turn_id']}").json()["parked_on"] == "approval"
    assert _decide(owen, wanted["id"]).status_code == 200
    worker.look()
    found = anna.get(f"/v1/turns/{turn}").json()
    assert (found["status"], found["answer"]) == ("done", "all in")

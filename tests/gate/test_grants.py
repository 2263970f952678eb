"""What an approval covers beyond one call: whom, where, how long; and that it ends when it is revoked."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import httpx
import pytest

from shared.gate.asking import Command
from shared.values import Role
from tests.api.serving import Api, Person
from tests.ground import Ground, Rehearsal, ground
from workers.waiting import gating


@pytest.fixture
def worker(api: Api, provider: Rehearsal, tmp_path: Path) -> Generator[Ground]:
    provider.reset()
    settings = api.settings
    with ground(settings.database_url, settings.redis_url, provider.url, tmp_path, approve_tools="write_file") as made:
        yield made


def _code(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


def _write(path: str = "a.txt") -> dict[str, Any]:
    return {"name": "write_file", "input": {"path": path, "content": "alpha"}}


def _ask(worker: Ground, provider: Rehearsal, person: Person, session: str, *tools: dict[str, Any]) -> dict[str, Any]:
    """A turn that makes these calls, run as far as it goes."""
    provider.script([{"text": "I will", "tools": list(tools)}, {"text": "over"}], session=session)
    turn = person.turn(session)
    worker.look()
    return person.get(f"/v1/turns/{turn}").json()


def _approve(person: Person, turn: dict[str, Any], scope: str) -> httpx.Response:
    (one,) = turn["waiting"]["approvals"]
    return person.post(f"/v1/approvals/{one['id']}", {"decision": "approve", "scope": scope})


def test_a_session_grant_holds_for_that_session_and_that_person_until_it_is_revoked(
    api: Api, worker: Ground, provider: Rehearsal
) -> None:
    anna, ben, owen = api.person("anna"), api.person("ben"), api.person("owen", Role.APPROVER)
    session, other = anna.session(audience="team"), anna.session(audience="team")
    turn = _ask(worker, provider, anna, session, _write())
    assert turn["parked_on"] == "approval"
    said = _approve(owen, turn, "session").json()
    assert (said["scope"], said["rule"], said["may_cover"]) == ("session", "settings", ["tool:write_file"])
    worker.look()

    assert _ask(worker, provider, anna, session, _write("b.txt"))["status"] == "done"
    assert _ask(worker, provider, ben, session, _write("c.txt"))["parked_on"] == "approval"
    assert _ask(worker, provider, anna, other, _write("d.txt"))["parked_on"] == "approval"

    (grant,) = anna.get("/v1/grants").json()["items"]
    assert (grant["scope"], grant["principal"], grant["patterns"], grant["stands"]) == (
        "session", anna.name, ["tool:write_file"], True,
    )  # fmt: skip
    assert ben.get("/v1/grants").json()["items"] == []
    assert _code(ben.http.delete(f"/v1/grants/{grant['id']}")) == (404, "not_found")
    assert owen.http.delete(f"/v1/grants/{grant['id']}").json()["revoked_by"] == owen.name
    assert owen.http.delete(f"/v1/grants/{grant['id']}").status_code == 200
    waiting = [row["id"] for row in owen.get("/v1/approvals", status="pending").json()["items"]]
    for one in waiting:
        owen.post(f"/v1/approvals/{one}", {"decision": "deny"})
    worker.look()
    assert _ask(worker, provider, anna, session, _write("e.txt"))["parked_on"] == "approval"
    told = api.rows("select action, detail from audit where subject = %s", grant["id"])
    assert [row["action"] for row in told] == ["grant.revoked"]
    (decided,) = api.rows("select detail from audit where subject = %s", said["id"])
    assert said["digest"] in decided["detail"]
    assert "scope session" in decided["detail"]


def test_an_always_grant_holds_in_every_session_of_that_person_and_for_that_pattern_alone(
    api: Api, worker: Ground, provider: Rehearsal
) -> None:
    anna, owen = api.person("anna"), api.person("owen", Role.APPROVER)
    turn = _ask(worker, provider, anna, anna.session(audience="team"), _write())
    assert _code(_approve(anna, turn, "always")) == (403, "role_insufficient")
    assert _approve(owen, turn, "always").status_code == 200
    worker.look()
    other = anna.session(audience="team")
    assert _ask(worker, provider, anna, other, _write("b.txt"))["status"] == "done"
    steering = _ask(worker, provider, anna, other, _write("AGENTS.md"))
    assert steering["parked_on"] == "approval"
    assert steering["waiting"]["approvals"][0]["rule"] == "steering.file"
    api.execute("update principals set disabled_at = clock_now() where id = %s", owen.id)
    assert _ask(worker, provider, anna, anna.session(), _write("c.txt"))["parked_on"] == "approval"


@pytest.mark.parametrize(("scope", "runs"), [("session", False), ("always", True)])
def test_a_session_grant_ends_at_its_session_and_so_before_its_children(
    api: Api, worker: Ground, provider: Rehearsal, scope: str, runs: bool
) -> None:
    """docs/decisions/0032: a child is of the same person, and another session."""
    anna, owen = api.person("anna"), api.person("owen", Role.APPROVER)
    session = anna.session(audience="team")
    assert _approve(owen, _ask(worker, provider, anna, session, _write()), scope).status_code == 200
    worker.look()
    provider.script([{"tools": [_write("of-a-child.txt")]}, {"text": "written"}])
    delegate = {"name": "delegate_task", "input": {"tasks": [{"goal": "write it"}]}}
    turn = _ask(worker, provider, anna, session, delegate)
    (child,) = api.rows("select id, status, parked_on, requested_by from turns where parent = %s", turn["id"])
    assert child["requested_by"] == anna.id
    assert (child["status"], child["parked_on"]) == (("done", None) if runs else ("parked", "approval"))


def test_what_steers_is_decided_each_time_and_never_granted(api: Api, worker: Ground, provider: Rehearsal) -> None:
    anna, owen = api.person("anna"), api.person("owen", Role.APPROVER)
    session = anna.session(audience="team")
    for name in ("CLAUDE.md", "claude.MD"):
        turn = _ask(worker, provider, anna, session, _write(name))
        assert turn["parked_on"] == "approval", name
        for scope in ("session", "always"):
            assert _code(_approve(owen, turn, scope)) == (422, "scope_unsupported")
        assert _approve(owen, turn, "once").status_code == 200
        worker.look()
        workspace = Path(api.rows("select workspace from sessions where id = %s", session)[0]["workspace"])
        assert (workspace / name).read_text() == "alpha"


def test_the_services_own_configuration_is_written_by_nobody(api: Api, worker: Ground, provider: Rehearsal) -> None:
    anna = api.person("anna")
    session = anna.session()
    turn = _ask(worker, provider, anna, session, _write("nightshift.toml"))
    assert turn["status"] == "done"
    (run,) = api.rows("select status, result from tool_runs where turn = %s", turn["id"])
    assert run["status"] == "denied"
    assert "own.configuration" in run["result"]


def test_a_bypass_is_an_approvers_to_open_and_reaches_no_steering(
    api: Api, worker: Ground, provider: Rehearsal
) -> None:
    anna, ben, owen = api.person("anna"), api.person("ben"), api.person("owen", Role.APPROVER)
    session = anna.session(audience="team")
    path = f"/v1/sessions/{session}/bypass"
    assert _code(anna.post(path, {"minutes": 5, "note": ""})) == (403, "role_insufficient")
    assert _code(owen.post(f"/v1/sessions/{ben.session()}/bypass", {"minutes": 5, "note": ""})) == (404, "not_found")
    for minutes in (0, 481, "5"):
        assert _code(owen.post(path, {"minutes": minutes, "note": ""})) == (422, "input_invalid")
    opened = owen.post(path, {"minutes": 5, "note": "a big change"})
    assert opened.status_code == 201, opened.text
    ask = {"command": "rm -rf build", "session": session}
    assert anna.post("/v1/gate", ask).json()["rule"] == "bypass"
    for command, decision in (("rm -rf /", "refuse"), ("echo x > AGENTS.md", "ask_person"), ("$X", "ask")):
        assert anna.post("/v1/gate", ask | {"command": command}).json()["decision"] == decision
    steering = _ask(worker, provider, anna, session, _write("AGENTS.md"))
    assert steering["parked_on"] == "approval"
    api.execute("update grants set expires_at = clock_now() where id = %s", opened.json()["id"])
    assert anna.post("/v1/gate", ask).json()["decision"] == "ask"
    (told,) = api.rows("select action, principal from audit where subject = %s", opened.json()["id"])
    assert (told["action"], told["principal"]) == ("gate.bypass", owen.id)


def test_the_gate_answers_over_http_and_names_what_it_understood(api: Api) -> None:
    anna = api.person("anna")
    said = anna.post("/v1/gate", {"command": "cd / && env A=1 sh -c 'rm -rf *'"}).json()
    assert (said["decision"], said["rule"], said["patterns"]) == ("refuse", "floor.delete", [])
    assert said["understood"][-1] == "rm -rf *"
    asked = anna.post("/v1/gate", {"command": "git push --force"}).json()
    assert (asked["decision"], asked["patterns"]) == ("ask", ["git.force_push"])
    assert anna.post("/v1/gate", {"command": "ls"}).json()["decision"] == "allow"
    assert _code(anna.post("/v1/gate", {"command": "ls", "session": str(anna.id)})) == (404, "not_found")
    assert _code(anna.post("/v1/gate", {})) == (422, "input_invalid")


def test_every_tool_is_known_to_the_gate_or_changes_no_file() -> None:
    from workers.tools import registry

    harmless = {
        "clarify", "delegate_task", "git_log", "list_files", "memory", "read_artifact", "read_file", "search_files",
        "session_search", "skills", "todo", "web_fetch", "web_search", "schedule_job", "send_message",
    }  # fmt: skip
    asked = set(gating._QUESTIONS)
    assert {name for name, tool in registry.TOOLS.items() if tool.ours} <= asked | harmless
    assert gating._question("terminal", {"command": "ls"}) == Command("ls")

"""A job at night that needs a person: it waits without a slot, stands in the inbox, goes on in the morning, and its
brief says what waited."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from scheduler.deliveries import run_due as deliver
from scheduler.room import Room
from scheduler.tick import run_due as tick
from shared import stream
from shared.doorbell import Doorbell, celery_app
from shared.store.pool import Database
from shared.values import Role, TurnClass
from tests.api.serving import Api, Person
from tests.ground import Ground, Rehearsal, ground

STEERS: dict[str, Any] = {"name": "write_file", "input": {"path": "AGENTS.md", "content": "be brief"}}
DELETES: dict[str, Any] = {"name": "terminal", "input": {"command": "mkdir -p old && rm -rf old && echo gone"}}


@pytest.fixture
def room(api: Api) -> Generator[Room]:
    database = Database(api.settings.database_url, size=2, wait_s=10, patience_s=20)
    app = celery_app(api.settings.redis_url, connections=2)
    yield Room(api.settings, database, Doorbell(app), stream.connect(api.settings.redis_url, connections=2))
    database.close()
    app.close()


@pytest.fixture
def worker(api: Api, provider: Rehearsal) -> Generator[Ground]:
    provider.reset()
    settings = api.settings
    with ground(settings.database_url, settings.redis_url, provider.url, settings.home, slots=1) as made:
        yield made


def _clock(api: Api, hours: float) -> None:
    """So much later: the night passes between two looks."""
    api.execute("update test_clock set offset_s = offset_s + %s, target_s = offset_s + %s", hours * 3600, hours * 3600)


def _due(api: Api, room: Room, provider: Rehearsal, owner: Person, *steps: dict[str, Any], **job: Any) -> UUID:
    """A nightly job whose time has come, and that will do this; its turn."""
    answer = owner.post(
        "/v1/jobs",
        {"name": f"nightly {job.get('profile', 'default')}", "cron": "0 2 * * *", "prompt": "Tidy up.", **job},
    )
    assert answer.status_code == 201, answer.text
    made = answer.json()
    _clock(api, 0)
    (left,) = api.rows(
        "select extract(epoch from next_at - clock_now()) / 3600 as h from jobs where id = %s", made["id"]
    )
    _clock(api, float(left["h"]) + 0.01)
    assert tick(room) >= 1
    (row,) = api.rows("select u.id, u.session from ticks t join turns u on u.id = t.turn where t.job = %s", made["id"])
    provider.script([{"text": "I will", "tools": list(steps)}, {"text": "tidied"}], session=str(row["session"]))
    return row["id"]


def test_it_waits_without_a_slot_until_somebody_is_there_and_the_brief_says_so(
    api: Api, worker: Ground, provider: Rehearsal, room: Room, tmp_path: Path
) -> None:
    anna, owen = api.person("anna"), api.person("owen", Role.APPROVER)
    turn = _due(api, room, provider, anna, STEERS)
    worker.look_once(TurnClass.JOB)
    asleep = worker.view(turn)
    assert (asleep["status"], asleep["parked_on"], asleep["holder"]) == ("parked", "approval", None)

    session = anna.session()  # the worker has one slot, and it is free
    provider.script([{"text": "at night, too"}], session=session)
    other = anna.turn(session)
    worker.look()
    assert worker.view(UUID(other))["answer"] == "at night, too"

    (asked,) = owen.get("/v1/approvals", status="pending").json()["items"]
    assert (asked["rule"], asked["may_cover"]) == ("steering.file", [])
    assert "AGENTS.md" in asked["why"]

    _clock(api, 5.5)
    assert worker.view(turn)["status"] == "parked"
    assert owen.post(f"/v1/approvals/{asked['id']}", {"decision": "approve"}).status_code == 200
    worker.look()
    assert worker.view(turn)["answer"] == "tidied"

    deliver(room)
    (delivery,) = api.rows("select status, evidence from deliveries where turn = %s", turn)
    text = Path(delivery["evidence"].rpartition(" sha256:")[0]).read_text("utf-8")
    assert "waited_for_a_person: 1" in text
    (line,) = [line for line in text.splitlines() if line.startswith("- write_file")]
    print(line)
    assert "AGENTS.md" in line
    assert "asked 02:00, approved by owen" in line
    assert "after 5 h 30 min" in line


def test_a_command_that_reaches_a_persons_folder_is_asked_about_and_runs_behind_the_wall_once_allowed(
    api: Api, worker: Ground, provider: Rehearsal, room: Room, tmp_path: Path
) -> None:
    boss, owen = api.person("boss", Role.ADMIN), api.person("owen", Role.APPROVER)
    turn = _due(api, room, provider, boss, DELETES, folder=str(tmp_path), profile="tidy")
    worker.look()
    assert worker.view(turn)["parked_on"] == "approval"
    (asked,) = [one for one in owen.get("/v1/approvals", status="pending").json()["items"] if one["tool"] == "terminal"]
    assert (asked["rule"], asked["may_cover"]) == ("delete.recursive", ["delete.recursive"])
    owen.post(f"/v1/approvals/{asked['id']}", {"decision": "approve"})
    worker.look()
    (run,) = api.rows("select status, result from tool_runs where turn = %s", turn)
    assert run["status"] == "done"
    assert "gone" in run["result"]


def test_where_the_profile_says_deny_a_job_is_refused_and_nobody_is_asked(
    api: Api, provider: Rehearsal, room: Room
) -> None:
    anna = api.person("anna")
    provider.reset()
    settings = api.settings
    with ground(
        settings.database_url, settings.redis_url, provider.url, settings.home, gate_modes="strict=deny"
    ) as strict:
        turn = _due(api, room, provider, anna, STEERS, profile="strict")
        strict.look()
        assert strict.view(turn)["status"] == "done"
    (run,) = api.rows("select status, result from tool_runs where turn = %s", turn)
    assert run["status"] == "denied"
    assert "mode.deny:steering.file" in run["result"]
    assert api.rows("select 1 from approvals where turn = %s", turn) == []

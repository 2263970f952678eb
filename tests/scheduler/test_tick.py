"""Due instants become turns: once each, whatever crashes, and the latest only after an outage."""

from __future__ import annotations

import json
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from psycopg import sql

from scheduler.tick import run_due
from shared.ids import uuid7
from tests.scheduler.world import World

PROMPT = "Read the folder and write the brief.\nBe short \u2069."


def job(world: World, **more: Any) -> UUID:
    """A job as the API makes it: valid, its next instant to be computed."""
    made = uuid7()
    owner = world.principal()
    fields = {
        "id": made, "name": f"night {made}", "owner": owner, "principal": owner, "cron": "0 6 * * *",
        "zone": "Europe/Berlin", "prompt": PROMPT, "next_at": None, **more,
    }  # fmt: skip
    columns = sql.SQL(", ").join(sql.Identifier(name) for name in fields)
    marks = sql.SQL(", ").join(sql.Placeholder() for _ in fields)
    with world.connection() as connection:
        connection.execute(sql.SQL("insert into jobs ({}) values ({})").format(columns, marks), list(fields.values()))
    return made


def ticks(world: World, made: UUID) -> list[tuple[str, str | None]]:
    rows = world.rows("select status, error_code from ticks where job = %s order by instant", made)
    return [(row["status"], row["error_code"]) for row in rows]


def ago(**delta: float) -> datetime:
    return datetime.now(UTC) - timedelta(**delta)


def test_a_new_job_gets_its_next_instant_and_does_not_run(world: World) -> None:
    made = job(world)
    with world.room() as room:
        assert run_due(room) == 0
    next_at = world.row("select next_at from jobs where id = %s", made)["next_at"]
    assert datetime.now(UTC) < next_at < datetime.now(UTC) + timedelta(hours=26)
    assert ticks(world, made) == []


def test_a_due_instant_becomes_a_session_a_turn_and_its_input(world: World) -> None:
    due = ago(seconds=30).replace(microsecond=0, second=0)
    folder = world.home / "input"
    folder.mkdir()
    made = job(
        world, cron="* * * * *", next_at=due, folder=str(folder), cap_usd=2, max_steps=40, tail="Look at today.",
        name="night \u202eshift\u201d",
    )  # fmt: skip
    with world.room() as room:
        assert run_due(room) == 1
        assert run_due(room) == 0
    (tick,) = world.rows("select * from ticks where job = %s and status = 'started'", made)
    turn = world.turn(tick["turn"])
    session = world.row("select * from sessions where id = %s", turn["session"])
    text = world.row("select payload, stable_prefix_len from inbox where turn = %s", turn["id"])
    assert (session["kind"], session["audience"], session["folder"], session["owner"]) == (
        "job", "team", str(folder), world.principal(),
    )  # fmt: skip
    assert session["workspace"] == str(world.home / "workspaces" / str(session["id"]))
    assert (turn["class"], turn["max_steps"], turn["cap_usd"], turn["deadline_s"]) == ("job", 40, 2, 14400)
    (block,) = json.loads(text["payload"])
    scaffold = block["text"][: text["stable_prefix_len"]]
    assert scaffold == PROMPT
    tail = block["text"][text["stable_prefix_len"] :]
    assert "Look at today." in tail
    assert str(tick["id"]) in tail
    assert f"{tick['instant'].astimezone(UTC):%Y-%m-%dT%H:%MZ}" in tail
    assert world.row("select next_at > clock_now() as later from jobs where id = %s", made)["later"]


def test_the_scaffold_of_two_runs_is_the_same_to_the_byte(world: World) -> None:
    made = job(world, cron="* * * * *")
    with world.room() as room:
        for _ in range(2):
            world.do("update jobs set next_at = date_trunc('minute', clock_now()) where id = %s", made)
            run_due(room)
            world.do("update test_clock set target_s = offset_s + 60, offset_s = offset_s + 60")
    inputs = world.rows("select payload, stable_prefix_len from inbox order by id")
    assert len(inputs) == 2
    texts = [json.loads(row["payload"])[0]["text"][: row["stable_prefix_len"]] for row in inputs]
    assert texts[0] == texts[1]


def test_after_an_outage_a_job_runs_once_for_its_latest_missed_instant(world: World) -> None:
    made = job(world, cron="0 * * * *", zone="UTC", next_at=ago(hours=5).replace(minute=0, second=0, microsecond=0))
    with world.room() as room:
        assert run_due(room) == 1
    found = ticks(world, made)
    assert found[-1] == ("started", None)
    assert set(found[:-1]) == {("skipped", "missed")}
    assert len(found) in {5, 6}


def test_a_month_of_missed_minutes_leaves_a_bounded_number_of_rows(world: World) -> None:
    made = job(world, cron="* * * * *", next_at=ago(days=31))
    with world.room() as room:
        assert run_due(room) == 1
    assert ticks(world, made) == [("skipped", "missed")] * 20 + [("started", None)]


@pytest.mark.parametrize("column", ["paused_at", "removed_at"])
def test_a_paused_or_removed_job_does_not_run(world: World, column: str) -> None:
    made = job(world, cron="* * * * *", next_at=ago(hours=1), **{column: ago(hours=2)})
    with world.room() as room:
        assert run_due(room) == 0
    assert ticks(world, made) == []


def test_two_schedulers_at_once_start_an_instant_once(world: World) -> None:
    made = [job(world, cron="* * * * *", next_at=ago(seconds=30).replace(second=0, microsecond=0)) for _ in range(12)]
    with world.room() as first, world.room() as second:
        threads = [threading.Thread(target=run_due, args=(room,)) for room in (first, second)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    for each in made:
        started = [found for found in ticks(world, each) if found[0] == "started"]
        assert 1 <= len(started) <= 2  # two where a minute began in between
    doubled = world.rows("select turn from ticks where turn is not null group by turn having count(*) > 1")
    assert doubled == []
    counts = world.row(
        "select (select count(*) from turns) as turns, (select count(*) from ticks where status = 'started') as ticks"
    )
    assert counts["turns"] == counts["ticks"]


def test_a_crash_in_the_middle_of_a_tick_leaves_nothing_and_the_next_pass_does_it(world: World) -> None:
    made = job(world, cron="* * * * *", next_at=ago(seconds=30).replace(second=0, microsecond=0))
    world.do("create function refuse() returns trigger language plpgsql as $$ begin raise exception 'crash'; end $$")
    world.do("create trigger crash before insert on inbox for each row execute function refuse()")
    with world.room() as room:
        assert run_due(room) == 0
        assert room.counters["tick.failed"] == 1
        assert ticks(world, made) == []
        assert world.rows("select 1 from sessions") == []
        world.do("drop trigger crash on inbox")
        assert run_due(room) == 1


def test_a_job_whose_folder_is_gone_fails_that_tick_alone(world: World) -> None:
    due = ago(seconds=30).replace(second=0, microsecond=0)
    gone = job(world, cron="* * * * *", next_at=due, folder="/nowhere/to/be/found")
    fine = job(world, cron="* * * * *", next_at=due)
    with world.room() as room:
        run_due(room)
    assert ticks(world, gone)[-1] == ("failed", "folder_missing")
    text = world.rows("select error_text from ticks where job = %s", gone)[-1]["error_text"]
    assert "/nowhere/to/be/found" in text
    assert ticks(world, fine)[-1] == ("started", None)
    assert world.row("select next_at > clock_now() as later from jobs where id = %s", gone)["later"]


def test_a_job_whose_cron_can_no_longer_be_read_is_paused_and_says_why(world: World) -> None:
    bad = job(world, cron="30 2 30 2 *", next_at=ago(minutes=5))
    lost = job(world, zone="Europe/Atlantis", next_at=ago(minutes=5))
    fine = job(world, cron="* * * * *", next_at=ago(seconds=30))
    with world.room() as room:
        run_due(room)
        run_due(room)
    assert ticks(world, bad) == [("failed", "cron_never_fires")]
    assert ticks(world, lost) == [("failed", "zone_unknown")]
    assert len(world.rows("select 1 from jobs where paused_at is not null")) == 2
    assert ticks(world, fine)[-1][0] == "started"


def by_hand(world: World, made: UUID) -> UUID:
    tick = uuid7()
    world.do("insert into ticks (id, job, instant, manual) values (%s, %s, clock_now(), true)", tick, made)
    return tick


def test_a_run_by_hand_starts_a_paused_job_too_and_leaves_its_rhythm_alone(world: World) -> None:
    next_at = datetime(2099, 1, 1, tzinfo=UTC)
    made = job(world, paused_at=ago(hours=1), next_at=next_at)
    tick = by_hand(world, made)
    with world.room() as room, world.room() as other:
        assert run_due(room) + run_due(other) == 1
    row = world.row("select * from ticks where id = %s", tick)
    assert row["status"] == "started"
    assert "by hand" in world.row("select payload from inbox where turn = %s", row["turn"])["payload"]
    assert world.row("select next_at from jobs where id = %s", made)["next_at"] == next_at


def test_a_run_by_hand_of_a_removed_job_or_a_missing_folder_ends_with_its_reason(world: World) -> None:
    removed = job(world, removed_at=ago(hours=1))
    missing = job(world, folder="/nowhere", next_at=datetime(2099, 1, 1, tzinfo=UTC))
    by_hand(world, removed)
    by_hand(world, missing)
    with world.room() as room:
        run_due(room)
        assert run_due(room) == 0
    assert ticks(world, removed) == [("cancelled", "job_removed")]
    assert ticks(world, missing) == [("failed", "folder_missing")]


def test_a_job_slower_than_its_rhythm_is_not_started_without_end(world: World) -> None:
    made = job(world, cron="* * * * *")
    with world.room() as room:
        for _ in range(13):
            world.do("update jobs set next_at = date_trunc('minute', clock_now()) where id = %s", made)
            run_due(room)
            world.do("update test_clock set target_s = offset_s + 60, offset_s = offset_s + 60")
    found = ticks(world, made)
    assert found.count(("started", None)) == 10
    assert found.count(("skipped", "too_many_open")) == 3


def test_the_workspace_of_a_job_is_its_own_where_it_names_one(world: World, tmp_path: Path) -> None:
    made = job(world, next_at=ago(seconds=1), workspace=str(tmp_path / "kept"))
    with world.room() as room:
        run_due(room)
    assert ticks(world, made)[-1][0] == "started"
    assert world.row("select workspace from sessions")["workspace"] == str(tmp_path / "kept")

"""What a run delivers: done only with evidence, tried again by itself, and never at the price of a second run."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import pytest

from scheduler.brief import Outcome, file_name, markdown, message
from scheduler.deliveries import run_due
from scheduler.room import Room
from scheduler.tick import run_due as tick
from tests.scheduler.test_tick import by_hand, job
from tests.scheduler.world import World


def ended(world: World, room: Room, made: UUID, status: str = "done", answer: str | None = "All quiet.") -> UUID:
    """A run of the job, started by hand and ended as a worker would; its tick."""
    by_hand(world, made)
    assert tick(room) == 1
    row = world.row("select id, turn from ticks where job = %s and status = 'started'", made)
    world.claim(row["turn"])
    world.do(
        "update turns set status = %s, holder = null, finished_at = clock_now(), answer = %s, spent_usd = 0.0125, "
        "error_code = %s, error_text = %s where id = %s",
        status, answer, *(("cap_reached", "the cap of $1 is used up") if status == "failed" else (None, None)),
        row["turn"],
    )  # fmt: skip
    return row["id"]


@pytest.fixture
def made(world: World) -> UUID:
    return job(world, name="Morning \u201cbrief\u201d: / ..", next_at=datetime(2099, 1, 1, tzinfo=UTC))


def test_a_finished_run_leaves_a_file_with_its_facts_and_evidence(world: World, made: UUID) -> None:
    world.changes["NIGHTSHIFT_REHEARSAL"] = "true"
    with world.room() as room:
        run = ended(world, room, made)
        assert run_due(room) == 1
        assert run_due(room) == 0
    (delivery,) = world.rows("select * from deliveries")
    path, _, digest = delivery["evidence"].rpartition(" sha256:")
    assert (delivery["status"], delivery["kind"], delivery["attempts"]) == ("done", "file", 1)
    assert Path(path).parent == world.home / "briefs"
    assert hashlib.sha256(Path(path).read_bytes()).hexdigest() == digest
    text = Path(path).read_text("utf-8")
    front = dict(line.split(": ", 1) for line in text.split("---\n")[1].splitlines())
    facts = {key: json.loads(value) for key, value in front.items()}
    assert facts["job"] == "Morning \u201cbrief\u201d: / .."
    assert (facts["run"], facts["status"], facts["cost_usd"], facts["rehearsal"]) == (str(run), "done", 0.0125, True)
    assert text.endswith("All quiet.\n")
    assert [p.name for p in (world.home / "briefs").iterdir()] == [Path(path).name]
    assert world.row("select status, ended_at is not null as ended from ticks where id = %s", run) == {
        "status": "done", "ended": True,
    }  # fmt: skip


def test_a_run_is_delivered_into_the_session_that_the_job_names_once(world: World, made: UUID) -> None:
    target = world.session()
    world.do("update jobs set deliver_session = %s where id = %s", target, made)
    with world.room() as room, world.room() as other:
        run = ended(world, room, made)
        assert run_due(room) + run_due(other) == 2
        world.do("update deliveries set status = 'due', evidence = null, ended_at = null, next_at = clock_now()")
        run_due(room)  # as after a crash between the delivery and its evidence
    (inbox,) = world.rows("select * from inbox where session = %s", target)
    (block,) = json.loads(inbox["payload"])
    assert inbox["kind"] == "delivery"
    assert "Morning" in block["text"]
    assert str(run) in block["text"]
    assert block["text"].endswith("All quiet.")
    evidence = world.row("select evidence from deliveries where kind = 'session'")["evidence"]
    assert evidence == f"inbox:{inbox['id']}"
    assert world.row("select class from turns where session = %s", target)["class"] == "chore"


def test_a_failed_run_says_so_and_a_cancelled_one_delivers_nothing(world: World, made: UUID) -> None:
    with world.room() as room:
        failed = ended(world, room, made, "failed", None)
        run_due(room)
        cancelled = ended(world, room, made, "cancelled", None)
        run_due(room)
    (path,) = (world.home / "briefs").iterdir()
    assert "This run failed (cap_reached): the cap of $1 is used up." in path.read_text()
    rows = {row["id"]: (row["status"], row["error_code"]) for row in world.rows("select * from ticks")}
    assert rows == {failed: ("failed", "cap_reached"), cancelled: ("cancelled", None)}


def test_a_delivery_that_fails_is_tried_again_and_costs_no_second_run(world: World, made: UUID, tmp_path: Path) -> None:
    away = tmp_path / "disk" / "briefs"  # its parent is not mounted yet
    world.do("update jobs set deliver_file = %s where id = %s", str(away), made)
    with world.room() as room:
        ended(world, room, made)
        run_due(room)
        row = world.row("select * from deliveries")
        assert (row["status"], row["attempts"], row["evidence"]) == ("due", 1, None)
        assert "No such file" in row["error_text"]
        assert row["next_at"] > datetime.now(UTC) + timedelta(seconds=0.5)
        run_due(room)
        assert world.row("select attempts from deliveries")["attempts"] == 1
        away.parent.mkdir()
        world.do("update deliveries set next_at = clock_now()")
        run_due(room)
        assert room.counters["delivery.done"] == 1
    row = world.row("select * from deliveries")
    assert (row["status"], row["attempts"], row["error_text"]) == ("done", 2, None)
    assert len(world.rows("select 1 from turns")) == 1
    assert len(list(away.iterdir())) == 1


def test_a_delivery_that_can_never_be_made_ends_as_failed(world: World, made: UUID) -> None:
    world.do("update jobs set deliver_session = %s where id = %s", UUID(int=5), made)
    with world.room() as room:
        ended(world, room, made)
        for _ in range(16):
            world.do("update deliveries set next_at = clock_now() where status = 'due'")
            run_due(room)
    rows = {row["kind"]: row for row in world.rows("select * from deliveries")}
    assert (rows["session"]["status"], rows["session"]["attempts"]) == ("failed", 16)
    assert "there is no session" in rows["session"]["error_text"]
    assert rows["file"]["status"] == "done"


def outcome(**changes: object) -> Outcome:
    facts: dict[str, object] = {
        "job": UUID(int=1), "name": "n", "run": UUID(int=2), "turn": UUID(int=3), "session": UUID(int=4),
        "instant": datetime(2026, 10, 25, 0, 30, tzinfo=UTC), "zone": "Europe/Berlin", "manual": False,
        "status": "done", "answer": "a", "error_code": None, "error_text": None, "cost_usd": Decimal("0.1"), "steps": 3,
        "model": "m", "rehearsal": False, **changes,
    }  # fmt: skip
    return Outcome(**facts)  # pyright: ignore[reportArgumentType] - the fields are checked by what reads them


def test_an_unknown_cost_is_null_and_never_zero() -> None:
    assert "cost_usd: null" in markdown(outcome(cost_usd=None))


def test_a_run_with_an_unknown_effect_says_so_above_its_answer() -> None:
    text = markdown(outcome(unknown_effects=2, rehearsal=True))
    assert "\nunknown_effects: 2\n" in text
    body = text.split("---\n\n", 1)[1]
    assert (
        body.index("no model wrote this") < body.index("Of 2 of this run's tool calls nobody knows") < body.index("a\n")
    )
    assert "nobody knows" not in markdown(outcome())


def test_the_due_time_stands_in_local_time_and_utc() -> None:
    text = markdown(outcome())
    assert 'due: "2026-10-25T02:30:00+02:00"' in text
    assert 'due_utc: "2026-10-25T00:30:00Z"' in text


def test_no_name_leaves_the_folder_and_no_answer_closes_the_front_matter() -> None:
    assert file_name("../../etc/passwd\n", UUID(int=255), datetime(2026, 1, 1, tzinfo=UTC)) == (
        "2026-01-01T000000Z-etc-passwd-000000ff.md"
    )
    assert file_name("\u4e2d\u6587", UUID(int=255), datetime(2026, 1, 1, tzinfo=UTC)).split("-")[3] == "job"
    hostile = markdown(outcome(name='x\n---\nstatus: "done"', answer="\ud800\x00"))
    assert hostile.count("\n---\n") == 1
    hostile.encode("utf-8")


def test_a_huge_answer_is_cut_in_the_message_and_says_so() -> None:
    text = message(outcome(answer="x" * 200_000))
    assert len(text) < 101_000
    assert "more characters left out" in text


def test_a_run_without_text_says_so() -> None:
    assert markdown(outcome(answer=" \n")).endswith("This run ended without text.\n")
    assert "no model wrote this" in markdown(outcome(rehearsal=True))

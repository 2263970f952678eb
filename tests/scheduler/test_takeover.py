"""A dead worker's turns are taken over in time; a living one's never."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable
from typing import Any
from uuid import UUID

import psycopg
import pytest

from deploy.drill.rig import slack
from scheduler.liveness import Seen, Why
from scheduler.takeover import take_orphans, take_over
from shared import stream
from tests.ground import until
from tests.scheduler.world import Child, World, seconds_until

SHORT = {"NIGHTSHIFT_LEASE_S": "3", "NIGHTSHIFT_HEARTBEAT_S": "0.5"}
Start = Callable[..., Child]


def scheduler(child: Start, world: World) -> Child:
    made = child("tests.scheduler.run", world.environment, "scheduler")
    assert made.line() == "nightshift scheduler ready"
    return made


def worker(child: Start, world: World) -> tuple[Child, UUID]:
    made = child("tests.scheduler.fake_worker", world.environment)
    return made, UUID(json.loads(made.line())["boot"])


def events(process: Child, name: str) -> list[dict[str, Any]]:
    lines = (json.loads(line) for line in process.log.read_text().splitlines() if line.startswith("{"))
    return [line for line in lines if line["event"] == name]


def holding(child: Start, world: World, turns: int = 1) -> tuple[Child, UUID, list[UUID]]:
    """A worker that holds so many turns, looked at by the scheduler for longer than the distance of two looks."""
    admitted = [world.admit() for _ in range(turns)]
    made, boot = worker(child, world)
    held = [UUID(made.ask("claim")["turn"]) for _ in range(turns)]
    assert set(held) == set(admitted)
    return made, boot, held


def seen_by(process: Child) -> None:
    """The scheduler has seen everything that is alive now: two looks have passed."""
    time.sleep(1.2)  # nothing announces a look


def is_queued(world: World, turn: UUID) -> Callable[[], bool]:
    return lambda: world.turn(turn)["status"] == "queued"


def test_a_killed_workers_turns_are_queued_again_within_two_and_a_half_seconds(world: World, child: Start) -> None:
    sweeper = scheduler(child, world)
    made, boot, turns = holding(child, world, 3)
    seen_by(sweeper)
    made.send(signal.SIGKILL)
    took = max(seconds_until(is_queued(world, turn), 10, "the turn is queued again") for turn in turns)
    assert took < 2.5 * slack()
    for turn in turns:
        row = world.turn(turn)
        assert (row["takeovers"], row["attempts"], row["holder"], row["fence"]) == (1, 1, None, 2)
    until(lambda: world.rows("select 1 from workers where boot_id = %s and stop_reason = 'lost'", boot), 5, "marked")
    (lost,) = events(sweeper, "worker.lost")
    assert (lost["boot"], lost["why"]) == (str(boot), "lock_gone")
    assert lost["silent_s"] > 1
    assert {e["turn"] for e in events(sweeper, "turn.taken_over")} == {str(turn) for turn in turns}


def test_a_frozen_worker_loses_its_turn_and_writes_nothing_when_it_thaws(world: World, child: Start) -> None:
    world.changes.update(SHORT)
    sweeper = scheduler(child, world)
    made, boot, (turn,) = holding(child, world)
    seen_by(sweeper)
    made.send(signal.SIGSTOP)
    took = seconds_until(is_queued(world, turn), 15, "the turn is queued again")
    assert 2 < took < 8 * slack()
    until(lambda: world.rows("select 1 from workers where boot_id = %s and stop_reason = 'lost'", boot), 5, "marked")
    made.send(signal.SIGCONT)
    assert made.ask("append") == {"appended": "lease lost"}
    assert world.turn(turn)["status"] == "queued"
    assert world.rows("select 1 from messages") == []
    until(lambda: made.ask("state")["claims"], 10, "it may claim again")
    assert world.row("select stopped_at, stop_reason from workers where boot_id = %s", boot) == {
        "stopped_at": None, "stop_reason": None,
    }  # fmt: skip


def test_a_frozen_worker_is_replaced_within_twenty_seconds_of_the_real_lease(world: World, child: Start) -> None:
    sweeper = scheduler(child, world)
    made, _, (turn,) = holding(child, world)
    seen_by(sweeper)
    made.send(signal.SIGSTOP)
    took = seconds_until(is_queued(world, turn), 30, "the turn is queued again")
    assert 9 < took < 20 * slack()


def test_a_live_worker_whose_lock_connection_is_ended_keeps_its_turn(world: World, child: Start) -> None:
    sweeper = scheduler(child, world)
    made, boot, (turn,) = holding(child, world)
    seen_by(sweeper)
    for _ in range(5):
        key = world.row("select lock_key from workers where boot_id = %s", boot)["lock_key"]
        ended = world.rows(
            "select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and granted "
            "and ((classid::bigint << 32) | objid::bigint) = %s and objsubid = 1",
            key,
        )
        assert len(ended) == 1
        time.sleep(0.9)  # long enough for a second look at a lock that stays away
    assert made.ask("state")["relocks"] == 6
    assert world.turn(turn)["takeovers"] == 0
    assert events(sweeper, "worker.lost") == []


def test_a_worker_that_renewed_after_it_was_judged_keeps_its_turn(world: World, child: Start) -> None:
    made, boot, (turn,) = holding(child, world)
    old = world.row("select beat_at from workers where boot_id = %s", boot)["beat_at"]
    before = made.ask("state")["renewals"]
    world.do("update workers set beat_at = clock_timestamp() where boot_id = %s", boot)
    with world.room() as room:
        judged = Seen(boot, old, 20.0, lease_over=True, locked=False)
        assert take_over(room, [(judged, Why.LEASE_OVER)]) == 0
    assert made.ask("state")["renewals"] >= before
    assert world.turn(turn)["status"] == "running"
    assert made.ask("append") == {"appended": [True]}


def test_a_worker_whose_lock_is_there_again_when_it_is_judged_by_it_keeps_its_turn(world: World, child: Start) -> None:
    _, boot, (turn,) = holding(child, world)
    beat = world.row("select beat_at from workers where boot_id = %s", boot)["beat_at"]
    with world.room() as room:
        judged = Seen(boot, beat, 2.0, lease_over=False, locked=False)
        assert take_over(room, [(judged, Why.LOCK_GONE)]) == 0
    assert world.turn(turn)["status"] == "running"


def dead(world: World, boot: UUID) -> Seen:
    """Judge a process that is gone for good."""
    row = world.row("select beat_at from workers where boot_id = %s", boot)
    return Seen(boot, row["beat_at"], 3.0, lease_over=False, locked=False)


def told_of(world: World, turn: UUID) -> list[stream.Event]:
    client: Any = stream.connect(world.redis_url)
    return [event for _, fields in client.xrange(stream.key(turn)) if (event := stream.decode(fields)) is not None]


@pytest.fixture
def gone(world: World, child: Start) -> tuple[UUID, list[UUID]]:
    """A killed worker that held three turns, and no scheduler yet."""
    made, boot, turns = holding(child, world, 3)
    made.end()
    until(lambda: not world.rows("select 1 from pg_locks where locktype = 'advisory' and objsubid = 1"), 5, "lock gone")
    return boot, turns


def test_a_turn_that_was_to_be_cancelled_ends_so_and_one_that_kills_its_workers_fails(
    world: World, gone: tuple[UUID, list[UUID]]
) -> None:
    boot, (cancelled, poison, again) = gone
    world.do("update turns set cancel_requested_at = clock_now() where id = %s", cancelled)
    world.do("update turns set attempts = 3, last_tool = 'read_file' where id = %s", poison)
    world.do(
        "insert into tool_runs (turn, step, ordinal, session, call_id, tool, arguments, digest, repeat, status, fence)"
        " select t.id, t.step, n, t.session, 'c', 'pay', '{}', 'd', repeat, 'started', t.fence"
        " from turns t, unnest(array['once', 'repeatable', 'keyed']) with ordinality as x(repeat, n) where t.id = %s",
        poison,
    )
    with world.room() as room:
        assert take_over(room, [(dead(world, boot), Why.LOCK_GONE)]) == 3
    assert world.turn(cancelled)["status"] == "cancelled"
    failed = world.turn(poison)
    assert (failed["status"], failed["error_code"]) == ("failed", "worker_lost_repeatedly")
    assert "3 times in a row" in failed["error_text"]
    assert "read_file" in failed["error_text"]
    told = [(event.kind, event.data.get("ordinal"), event.data["status"]) for event in told_of(world, poison)]
    assert told == [
        ("tool.finished", 1, "unknown"), ("tool.finished", 3, "unknown"), ("turn.finished", None, "failed"),
    ]  # fmt: skip
    assert world.turn(again)["status"] == "queued"


def test_a_turn_whose_session_somebody_holds_is_skipped_counted_and_taken_in_the_next_pass(
    world: World, gone: tuple[UUID, list[UUID]]
) -> None:
    boot, (held, *_) = gone
    session = world.turn(held)["session"]
    with world.room() as room, psycopg.connect(world.database_url) as other:
        other.execute("select 1 from sessions where id = %s for update", (session,))
        judged = dead(world, boot)
        assert take_over(room, [(judged, Why.LOCK_GONE)]) == 2
        assert room.counters["takeover.locked"] == 1
        assert world.rows("select 1 from workers where boot_id = %s and stopped_at is null", boot)
        other.rollback()
        assert take_over(room, [(judged, Why.LOCK_GONE)]) == 1
    assert world.row("select stop_reason from workers where boot_id = %s", boot) == {"stop_reason": "lost"}


def test_one_turn_that_cannot_be_taken_strands_no_other(world: World, gone: tuple[UUID, list[UUID]]) -> None:
    boot, (bad, *good) = gone
    world.do(
        "create function refuse() returns trigger language plpgsql as $$ begin raise exception 'poison'; end $$"
    )  # fmt: skip
    world.do("create trigger poison before update on turns for each row when (old.takeovers = 0 and old.max_steps = 7) "
             "execute function refuse()")  # fmt: skip
    world.do("alter table turns disable trigger poison")
    world.do("update turns set max_steps = 7 where id = %s", bad)
    world.do("alter table turns enable trigger poison")
    with world.room() as room:
        assert take_over(room, [(dead(world, boot), Why.LOCK_GONE)]) == 2
        assert room.counters["takeover.failed"] == 1
    assert {world.turn(turn)["status"] for turn in good} == {"queued"}
    assert world.turn(bad)["status"] == "running"


def test_two_schedulers_take_a_turn_once(world: World, gone: tuple[UUID, list[UUID]]) -> None:
    boot, turns = gone
    judged = [(dead(world, boot), Why.LOCK_GONE)]
    with world.room() as first, world.room() as second:
        assert take_over(first, judged) + take_over(second, judged) == 3
    assert [world.turn(turn)["takeovers"] for turn in turns] == [1, 1, 1]


def test_a_turn_whose_holder_stopped_or_was_never_there_is_freed(world: World, child: Start) -> None:
    made, _, (turn,) = holding(child, world)
    made.ask("stop")
    stray = world.admit()
    world.claim(stray)
    with world.room() as room:
        assert take_orphans(room) == 2
        assert take_orphans(room) == 0
    assert {world.turn(t)["status"] for t in (turn, stray)} == {"queued"}

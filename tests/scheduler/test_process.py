"""The scheduler and beat as processes: their beginning and end, and what outages of broker and database cost."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from deploy.drill.rig import slack
from deploy.local import servers as local
from deploy.local.servers import Servers, ephemeral
from shared.store import migrate
from tests.ground import until
from tests.scheduler.test_tick import job
from tests.scheduler.world import ROOT, Child, World, seconds_until

SHORT = {"NIGHTSHIFT_LEASE_S": "3", "NIGHTSHIFT_HEARTBEAT_S": "0.5"}
Start = Callable[..., Child]


def started(child: Start, world: World, role: str) -> Child:
    made = child("tests.scheduler.run", world.environment, role)
    assert made.line() == f"nightshift {role} ready"
    return made


def worker(child: Start, world: World) -> tuple[Child, UUID]:
    made = child("tests.scheduler.fake_worker", world.environment)
    return made, UUID(json.loads(made.line())["boot"])


def ended(process: Child) -> dict[str, Any]:
    """Ask it to end, and return the counters that it leaves in its log."""
    process.send(signal.SIGTERM)
    assert process.process.wait(10) == 0
    lines = [json.loads(line) for line in process.log.read_text().splitlines() if line.startswith("{")]
    return next(line for line in lines if line["event"] == "scheduler.ended")


@pytest.fixture
def own(tmp_path: Path) -> Generator[Servers]:
    """Servers of this test alone, to be stopped."""
    with ephemeral(tmp_path / "stack") as running:
        migrate.upgrade(running.postgres.url)
        yield running


@pytest.fixture
def fragile(own: Servers, tmp_path: Path) -> World:
    home = tmp_path / "home"
    home.mkdir()
    return World(own.postgres.url, own.valkey.url, home, dict(SHORT))


def start_again(running: local.Running) -> None:
    running.process = local.start(running.server, running.log).process


def test_a_scheduler_says_when_it_is_ready_and_ends_cleanly_when_asked(world: World, child: Start) -> None:
    process = started(child, world, "scheduler")
    assert world.row("select stopped_at, slots from workers where kind = 'scheduler'") == {
        "stopped_at": None,
        "slots": 0,
    }
    ended(process)
    assert world.row("select stop_reason from workers where kind = 'scheduler'") == {"stop_reason": "stopped"}


@pytest.mark.parametrize(
    ("role", "environment", "named"),
    [
        ("scheduler", {}, "NIGHTSHIFT_DATABASE_URL"),
        ("scheduler", {"NIGHTSHIFT_DATABASE_URL": "postgresql://x/y"}, "NIGHTSHIFT_REDIS_URL"),
        ("scheduler", {"NIGHTSHIFT_LEASE_S": "soon"}, "NIGHTSHIFT_LEASE_S"),
        ("beat", {}, "NIGHTSHIFT_REDIS_URL"),
        ("beat", {"NIGHTSHIFT_REDIS_ULR": "x"}, "NIGHTSHIFT_REDIS_ULR"),
    ],
)
def test_a_wrong_setting_ends_the_start_with_its_name(
    role: str, environment: dict[str, str], named: str, tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.scheduler.run", role],
        cwd=ROOT, env={"PATH": os.environ["PATH"], "NIGHTSHIFT_HOME": str(tmp_path), **environment},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 78
    assert named in done.stderr


def test_a_database_at_another_revision_is_refused_with_the_mend(fragile: World) -> None:
    fragile.do("update alembic_version set version_num = '9999'")
    done = subprocess.run(
        [sys.executable, "-m", "tests.scheduler.run", "scheduler"],
        cwd=ROOT, env={"PATH": os.environ["PATH"], **fragile.environment},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 78
    assert "newer than this code" in done.stderr


def test_a_scheduler_started_before_its_database_waits_for_it(fragile: World, own: Servers, child: Start) -> None:
    local.stop(own.postgres.running)
    process = child("tests.scheduler.run", fragile.environment, "scheduler")
    until(lambda: "scheduler.no_database" in process.log.read_text(), 20, "it tries")
    start_again(own.postgres.running)
    assert process.line() == "nightshift scheduler ready"


def test_a_scheduler_ends_when_asked_while_its_database_is_frozen(fragile: World, own: Servers, child: Start) -> None:
    process = started(child, fragile, "scheduler")
    frozen = [own.postgres.pid, *(row["pid"] for row in fragile.rows("select pid from pg_stat_activity"))]
    for pid in frozen:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
    try:
        time.sleep(1)  # its threads are waiting for answers now
        process.send(signal.SIGTERM)
        assert process.process.wait(12) == 0
    finally:
        for pid in frozen:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def test_beat_rings_the_chores_and_a_dead_broker_costs_only_the_rings(
    fragile: World, own: Servers, child: Start
) -> None:
    process, beat = started(child, fragile, "scheduler"), started(child, fragile, "beat")
    local.stop(own.valkey.running)
    turn = fragile.admit()
    fragile.park(turn, 1)
    made = job(fragile, cron="* * * * *", next_at=None)
    until(lambda: fragile.turn(turn)["status"] == "queued", 8, "the sweep wakes it by its own timer")
    fragile.do("update jobs set next_at = clock_now() where id = %s", made)
    until(lambda: fragile.rows("select 1 from ticks where status = 'started'"), 8, "the tick comes by its own timer")
    assert beat.process.poll() is None
    start_again(own.valkey.running)
    time.sleep(6)  # rings come again; only the log at the end tells how many
    assert ended(process)["chores.rung"] >= 4
    beat.send(signal.SIGTERM)
    assert beat.process.wait(10) == 0


def test_beat_ends_when_asked_while_its_broker_is_away(fragile: World, own: Servers, child: Start) -> None:
    local.stop(own.valkey.running)
    beat = started(child, fragile, "beat")
    time.sleep(1)  # it is trying
    beat.send(signal.SIGTERM)
    assert beat.process.wait(10) == 0


@pytest.mark.parametrize("away_s", [0, 4])
def test_a_restarted_database_costs_a_live_worker_no_turn(
    fragile: World, own: Servers, child: Start, away_s: float
) -> None:
    process = started(child, fragile, "scheduler")
    turn = fragile.admit()
    made, _ = worker(child, fragile)
    assert made.ask("claim")["turn"] == str(turn)
    time.sleep(1.2)  # it was seen locked
    local.stop(own.postgres.running)
    time.sleep(away_s)  # the outage itself; four seconds are more than a lease
    start_again(own.postgres.running)
    until(lambda: made.ask("state")["claims"], 15, "the worker is alive again")
    time.sleep(4)  # more than a lease: a wrong verdict would have fallen by now
    assert made.ask("append") == {"appended": [True]}
    row = fragile.turn(turn)
    assert (row["status"], row["takeovers"]) == ("running", 0)
    made.send(signal.SIGKILL)
    assert seconds_until(lambda: fragile.turn(turn)["status"] == "queued", 10, "and a killed one is found again") < 3
    assert ended(process)["worker.lost"] == 1


def test_a_worker_killed_while_the_database_was_away_is_found_after_a_lease(
    fragile: World, own: Servers, child: Start
) -> None:
    started(child, fragile, "scheduler")
    turn = fragile.admit()
    made, _ = worker(child, fragile)
    made.ask("claim")
    time.sleep(1.2)  # it was seen locked
    local.stop(own.postgres.running)
    made.end()
    start_again(own.postgres.running)
    took = seconds_until(lambda: fragile.turn(turn)["status"] == "queued", 20, "taken over")
    assert 1 < took < 9 * slack()


def test_two_schedulers_and_two_beats_do_each_thing_once(world: World, child: Start) -> None:
    world.changes.update(SHORT)
    processes = [started(child, world, role) for role in ("scheduler", "scheduler", "beat", "beat")]
    made = job(world, cron="* * * * *", next_at=None)
    turns = [world.admit() for _ in range(4)]
    victim, _ = worker(child, world)
    for _ in turns:
        victim.ask("claim")
    time.sleep(1.2)  # it was seen locked
    world.do("update jobs set next_at = date_trunc('minute', clock_now()) where id = %s", made)
    victim.send(signal.SIGKILL)
    for turn in turns:
        until(lambda turn=turn: world.turn(turn)["status"] == "queued", 10, "taken over")
    until(lambda: world.rows("select 1 from ticks where status = 'started'"), 10, "the tick")
    time.sleep(2)  # a second of either would show by now
    assert [world.turn(turn)["takeovers"] for turn in turns] == [1, 1, 1, 1]
    started_ticks = world.rows("select instant from ticks where status = 'started'")
    assert len(started_ticks) == len({row["instant"] for row in started_ticks})
    assert len(world.rows("select 1 from turns where class = 'job'")) == len(started_ticks)
    lost = [ended(process).get("worker.lost", 0) for process in processes[:2]]
    assert sum(lost) == 1

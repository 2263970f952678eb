"""A process's life goes on whatever happens to its connections, and knows by itself when it may no longer act."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from deploy.drill.rig import slack
from deploy.local import servers as local
from deploy.local.servers import Servers, ephemeral
from shared.boottime import boottime
from shared.life import Life
from shared.store import migrate
from shared.store.deadline import within
from tests.scheduler.world import Child, World, seconds_until, until

SHORT = {"NIGHTSHIFT_LEASE_S": "2", "NIGHTSHIFT_HEARTBEAT_S": "0.3"}


@contextlib.contextmanager
def living(world: World, **changes: str) -> Generator[Life]:
    world.changes.update(changes)
    life = Life(world.settings, "worker", 4, "interactive,job")
    assert life.start(20)
    try:
        yield life
    finally:
        life.stop("test over")


def locks(world: World, life: Life) -> list[int]:
    """The backends that hold the life's lock."""
    rows = world.rows(
        "select pid from pg_locks where locktype = 'advisory' and granted and objsubid = 1 "
        "and ((classid::bigint << 32) | objid::bigint) = %s",
        life.lock_key,
    )
    return [row["pid"] for row in rows]


def row(world: World, life: Life) -> Any:
    return world.row("select * from workers where boot_id = %s", life.boot_id)


def test_a_life_begins_with_its_lock_and_then_its_row(world: World) -> None:
    with living(world) as life:
        assert len(locks(world, life)) == 1
        mine = row(world, life)
        assert (mine["kind"], mine["slots"], mine["classes"], mine["pid"]) == (
            "worker",
            4,
            "interactive,job",
            os.getpid(),
        )
        assert 14 < (mine["lease_until"] - mine["beat_at"]).total_seconds() < 16
        assert life.claims_allowed
        assert life.may_act()
        assert life.lease_deadline() < boottime() + 15 - 0.9


def test_a_life_that_ends_says_so_and_gives_its_lock_back(world: World) -> None:
    with living(world) as life:
        life.stop("drained")
        assert not life.claims_allowed
        assert not life.may_act()
        mine = row(world, life)
        assert (mine["stop_reason"], mine["draining"]) == ("drained", True)
        assert locks(world, life) == []


def test_draining_stops_claims_at_once_and_is_told_to_the_others_soon(world: World) -> None:
    with living(world) as life:
        life.drain()
        assert life.draining
        assert not life.claims_allowed
        assert life.may_act()
        until(lambda: row(world, life)["draining"], 3, "the row says draining")


def test_an_ended_lock_connection_is_locked_again_within_half_a_second(world: World) -> None:
    with living(world) as life:
        (backend,) = locks(world, life)
        world.rows("select pg_terminate_backend(%s)", backend)
        took = seconds_until(lambda: any(pid != backend for pid in locks(world, life)), 5, "locked again")
        assert took < 0.5 * slack()
        until(lambda: life.claims_allowed, 1, "claims are allowed again")


def test_claims_are_not_allowed_while_the_lock_is_away_and_the_heartbeat_quickens(world: World) -> None:
    with living(world) as life, psycopg.connect(world.database_url, autocommit=True) as thief:
        (backend,) = locks(world, life)
        waiting = threading.Thread(target=lambda: thief.execute("select pg_advisory_lock(%s)", (life.lock_key,)))
        waiting.start()
        until(
            lambda: world.rows("select 1 from pg_locks where locktype = 'advisory' and not granted"), 5, "waits for it"
        )
        world.rows("select pg_terminate_backend(%s)", backend)
        waiting.join(5)
        until(lambda: not life.claims_allowed, 2, "claims stop")
        before = life.renewals
        until(lambda: life.renewals >= before + 3, 2.5, "three renewals")
        assert life.may_act()
        thief.execute("select pg_advisory_unlock(%s)", (life.lock_key,))
        until(lambda: life.claims_allowed, 5, "claims are allowed again")


def test_a_row_that_was_taken_for_lost_is_revived_by_the_next_renewal_under_the_same_boot_id(world: World) -> None:
    with living(world, **SHORT) as life:
        world.do("update workers set stopped_at = now(), stop_reason = 'lost' where boot_id = %s", life.boot_id)
        until(lambda: row(world, life)["stopped_at"] is None, 3, "revived")
        world.do("delete from workers")
        until(lambda: world.rows("select 1 from workers where boot_id = %s", life.boot_id), 3, "made again")


def test_a_life_that_cannot_reach_its_database_does_not_begin_and_does_not_hang(world: World) -> None:
    world.database_url = "postgresql://nobody@/nothing?host=/nowhere"
    life = Life(world.settings, "worker", 1, "job")
    begun = time.monotonic()
    assert not life.start(0.5)
    assert not life.claims_allowed
    assert life.lease_deadline() == 0.0
    life.stop("never was")
    assert time.monotonic() - begun < 5 * slack()


def test_a_frozen_process_knows_at_once_that_its_lease_is_over(world: World, child: Callable[..., Child]) -> None:
    world.changes.update(SHORT)
    made = child("tests.scheduler.fake_worker", world.environment)
    boot = json.loads(made.line())["boot"]
    state = made.ask("state")
    assert (state["may_act"], state["lapses"]) == (True, 0)
    with world.connection() as blocker, blocker.transaction():
        # Its next renewal waits, so that what it knows by itself is what it answers.
        blocker.execute("select 1 from workers where boot_id = %s for update", (boot,))
        until(lambda: world.rows("select 1 from pg_locks where not granted"), 5, "a renewal waits")
        made.send(signal.SIGSTOP)
        time.sleep(2.2)  # longer than the lease; nothing announces the passing of time
        made.send(signal.SIGCONT)
        state = made.ask("state")
    assert (state["may_act"], state["claims"]) == (False, False)
    until(lambda: made.ask("state")["claims"], 10, "alive again")
    assert made.ask("state")["lapses"] > 0  # so that nobody takes the new lease for the old one


def test_a_silent_server_is_left_after_the_bound_and_costs_that_connection_only(world: World) -> None:
    with world.connection() as blocked, world.connection() as holder:
        holder.execute("begin")
        holder.execute("select pg_advisory_lock(1)")
        begun = time.monotonic()
        with pytest.raises(psycopg.OperationalError), within(blocked, 0.3):
            blocked.execute("select pg_advisory_lock(1)")
        assert time.monotonic() - begun < 2 * slack()
        assert holder.execute("select 1").fetchone() == (1,)


@pytest.fixture
def own_servers(tmp_path: Path) -> Generator[Servers]:
    """Servers of this test alone, to be stopped and frozen."""
    with ephemeral(tmp_path / "stack") as running:
        migrate.upgrade(running.postgres.url)
        yield running


@pytest.fixture
def fragile(own_servers: Servers, tmp_path: Path) -> World:
    home = tmp_path / "home"
    home.mkdir()
    return World(own_servers.postgres.url, own_servers.valkey.url, home, dict(SHORT))


def test_a_frozen_server_hangs_no_thread_and_the_lease_runs_out_meanwhile(fragile: World, own_servers: Servers) -> None:
    with living(fragile) as life:
        backends = [r["pid"] for r in fragile.rows("select pid from pg_stat_activity where pid is not null")]
        frozen = [own_servers.postgres.pid, *backends]
        for pid in frozen:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
        try:
            until(lambda: not life.may_act(), 6, "the lease is over")
            time.sleep(4.5)  # past the bound of a single answer
        finally:
            for pid in frozen:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)
        until(lambda: life.claims_allowed, 10, "alive again")
        assert len(locks(fragile, life)) == 1


def test_a_restarted_server_is_locked_again_within_seconds(fragile: World, own_servers: Servers) -> None:
    with living(fragile) as life:
        boot = life.boot_id
        local.stop(own_servers.postgres.running)
        until(lambda: not life.claims_allowed, 5, "claims stop")
        own_servers.postgres.running.process = local.start(
            own_servers.postgres.running.server, own_servers.postgres.running.log
        ).process
        until(lambda: life.claims_allowed, 10, "alive again")
        assert len(locks(fragile, life)) == 1
        assert life.boot_id == boot

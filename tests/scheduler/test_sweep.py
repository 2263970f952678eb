"""What the sweep finds: parks whose time has come, queued turns that nobody rang for, idle inboxes, old rows."""

from __future__ import annotations

import threading
from typing import Any
from uuid import UUID

import psycopg
import pytest

from scheduler.counting import write as write_counters
from scheduler.ringing import plan, ring_waiting
from scheduler.sweep import Sweep
from scheduler.upkeep import fold_idle, forget, report
from scheduler.wake import Waker
from shared import stream
from shared.life import Life
from shared.store.intake import How, NewTurn, deliver, steer
from shared.values import TurnClass
from tests.scheduler.world import PAYLOAD, World


def test_a_due_park_is_woken_and_one_that_is_not_due_sleeps_on(world: World) -> None:
    due, later = world.admit(), world.admit()
    world.park(due, 0)
    world.park(later, 3600)
    with world.room() as room:
        assert Waker(room).run() == 1
        assert room.counters["wake_missed"] == 0
    woken = world.turn(due)
    assert (woken["status"], woken["parked_on"], woken["wake_at"]) == ("queued", None, None)
    assert world.turn(later)["status"] == "parked"


def test_a_deadline_stands_still_while_a_turn_is_parked(world: World) -> None:
    turn = world.admit()
    world.park(turn, 10)
    before = world.turn(turn)["deadline_at"]
    world.do("update test_clock set target_s = 3600, offset_s = 3600")
    with world.room() as room:
        assert Waker(room).run() == 1
    assert 3600 <= (world.turn(turn)["deadline_at"] - before).total_seconds() < 3620


def test_a_wake_waits_for_whoever_decides_about_the_turn_and_then_looks_again(world: World) -> None:
    turn = world.admit()
    world.park(turn, 0)
    with world.room() as room, psycopg.connect(world.database_url) as api:
        api.execute("select 1 from turns where id = %s for update", (turn,))
        waker = Waker(room)
        sweeping = threading.Thread(target=waker.run)
        sweeping.start()
        api.execute(
            "update turns set status = 'cancelled', parked_on = null, wake_at = null, finished_at = clock_now() "
            "where id = %s",
            (turn,),
        )
        api.commit()
        sweeping.join(20)
        assert room.counters["turn.woken"] == 0
    assert world.turn(turn)["status"] == "cancelled"


def test_an_outage_is_no_missed_wake_and_a_park_that_a_pass_overlooked_is(world: World) -> None:
    first, second = world.admit(), world.admit()
    with world.room() as room:
        waker = Waker(room)
        waker.run()
        world.park(first, 1)
        world.do("update test_clock set target_s = 600, offset_s = 600")  # nobody swept for ten minutes
        assert waker.run() == 1
        assert room.counters["wake_missed"] == 0
        world.park(second, 0)
        world.do("update turns set wake_at = clock_now() - interval '1 minute' where id = %s", second)
        assert waker.run() == 1
        assert room.counters["wake_missed"] == 1


def test_a_park_without_a_time_does_not_sleep_for_ever(world: World) -> None:
    turn = world.admit()
    world.park(turn, None)
    world.do("update test_clock set target_s = 10, offset_s = 10")
    with world.room() as room:
        Waker(room).run()
        assert room.counters["wake_missed"] == 1
    assert world.turn(turn)["status"] == "queued"


def queue_length(world: World, queue: str) -> int:
    client: Any = stream.connect(world.redis_url, connections=1)
    return client.llen(queue)


def test_each_class_with_a_claimable_turn_is_rung_in_proportion_to_free_slots(world: World) -> None:
    client: Any = stream.connect(world.redis_url, connections=1)
    client.flushall()
    for _ in range(3):
        world.admit(turn_class=TurnClass.JOB)
    world.admit(turn_class=TurnClass.CHILD)
    busy = world.session()
    running, waiting = world.admit(busy), world.admit(busy)
    world.park(running, 3600)
    life = Life(world.settings, "worker", 8, "interactive,child,job")
    assert life.start(10)
    try:
        with world.room() as room:
            assert ring_waiting(room) == 4
    finally:
        life.stop("test over")
    assert world.turn(waiting)["status"] == "queued"
    assert (queue_length(world, "jobs"), queue_length(world, "children"), queue_length(world, "interactive")) == (
        3,
        1,
        0,
    )


def test_what_two_schedulers_have_counted_stands_in_the_database_once(world: World) -> None:
    """Whole values: written again they count nothing twice; what came of a process that is long gone is added up."""
    for turn in (world.admit(), world.admit()):
        world.park(turn, None)
    world.do("update turns set parked_at = clock_now() - interval '1 minute'")

    def counted() -> int:
        return world.row("select coalesce(sum(value), 0)::int as n from counters where name = 'wake_missed'")["n"]

    with world.room() as first, world.room() as second:
        Sweep(first).run()
        second.count("wake_missed")
        write_counters(second)
        assert (first.counters["wake_missed"], counted()) == (2, 3)
        second.written.clear()
        assert write_counters(second) == 1
        assert write_counters(second) == 0
        assert counted() == 3
        world.do("update counters set written_at = written_at - interval '2 days' where boot = %s", first.boot)
        forget(second)
        forget(second)
        assert counted() == 3
        assert world.rows("select 1 from counters where boot = %s", first.boot) == []


def test_rings_are_planned_by_rank_slots_and_doubt() -> None:
    interactive, child, job, chore = TurnClass
    assert plan({}, 8, {}, truncated=False) == []
    assert plan({job: 5}, 0, {}, truncated=False) == [job]
    assert plan({job: 5, interactive: 2}, 3, {}, truncated=False) == [interactive, interactive, job]
    assert plan({chore: 1000}, 1000, {}, truncated=False) == [chore] * 64
    assert plan({job: 5, child: 2}, 9, {job: 3}, truncated=False) == [child, child, job, job]
    assert plan({job: 5}, 9, {job: 1000}, truncated=False) == [job]  # who is deaf is not waited for
    assert plan({job: 2000}, 4, {}, truncated=True) == [interactive, child, job, job, job, job, chore]


def test_a_dead_broker_costs_a_sweep_nothing_but_its_rings(world: World) -> None:
    due = world.admit()
    world.park(due, 0)
    world.redis_url = "unix:///nowhere/valkey.sock"
    with world.room() as room:
        Sweep(room).run()
        assert room.counters["sweep.part_failed"] == 0
        assert room.counters["rings"] == 0
    assert world.turn(due)["status"] == "queued"


def test_an_idle_session_with_a_waiting_delivery_gets_one_housekeeping_turn(world: World) -> None:
    session, owner = world.session(), world.principal()
    with world.connection() as connection, connection.transaction():
        made = deliver(connection, session, owner, PAYLOAD, "d:1")
    world.do("update turns set status = 'cancelled', finished_at = clock_now() where id = %s", made)
    with world.room() as room, world.room() as other:
        assert fold_idle(room) == 0
        world.do("update test_clock set target_s = 3, offset_s = 3")
        assert fold_idle(room) + fold_idle(other) == 1
    row = world.row("select class, requested_by, max_steps from turns where status = 'queued'")
    assert row == {"class": "chore", "requested_by": owner, "max_steps": 1}


def test_an_inbox_that_a_turn_will_fold_is_left_alone(world: World) -> None:
    turn = world.admit()
    world.park(turn, 7200)
    session: UUID = world.turn(turn)["session"]
    said = NewTurn(session, world.principal(), TurnClass.INTERACTIVE, PAYLOAD, deadline_s=60, max_steps=90)
    with world.connection() as connection, connection.transaction():
        assert steer(connection, turn, said, queue_bound=10).how is How.STEERED
    assert world.row("select turn from inbox where kind = 'steer' and folded_into is null")["turn"] == turn
    world.do("update test_clock set target_s = 60, offset_s = 60")
    with world.room() as room:
        assert fold_idle(room) == 0


def test_old_answers_and_ended_processes_are_forgotten_and_young_ones_kept(world: World) -> None:
    principal = world.principal()
    for key, age in (("old", "25 hours"), ("young", "23 hours")):
        world.do(
            "insert into idempotency (principal, key, route, body_hash, created_at) "
            "values (%s, %s, '/', '', clock_now() - %s::interval)",
            principal, key, age,
        )  # fmt: skip
    for number, age in ((1, "2 days"), (2, "1 hour")):
        world.do(
            "insert into workers (boot_id, kind, host, pid, slots, classes, lock_key, lease_until, stopped_at) "
            "values (%s, 'worker', 'h', 1, 1, '', %s, now(), now() - %s::interval)",
            UUID(int=number), number, age,
        )  # fmt: skip
    with world.room() as room:
        forget(room)
    assert [row["key"] for row in world.rows("select key from idempotency")] == ["young"]
    assert [row["boot_id"].int for row in world.rows("select boot_id from workers")] == [2]


def test_what_must_not_exist_is_counted_and_left_as_it_is(world: World) -> None:
    turn = world.admit()
    world.park(turn, 0)
    with world.room() as room:
        Waker(room).run()
        report(room)
        assert room.counters["turns.overdue"] == 0
        world.claim(turn)
        world.do("update test_clock set target_s = 9000, offset_s = 9000")
        report(room)
        assert room.counters["turns.overdue"] == 1
    assert world.turn(turn)["status"] == "running"


def test_a_part_that_fails_costs_the_other_parts_nothing(world: World) -> None:
    due = world.admit()
    world.park(due, 0)
    world.do("alter table workers rename to workers_away")  # takeovers and free slots cannot be read
    with world.room(patience_s=1) as room:
        Sweep(room).run()
        assert room.counters["sweep.part_failed"] >= 1
    assert world.turn(due)["status"] == "queued"


def test_bad_rows_at_the_front_of_a_batch_do_not_strand_those_behind(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scheduler.rows.BATCH", 2)
    turns = [world.admit() for _ in range(4)]
    for turn in turns:
        world.park(turn, 0)
    for turn in turns[:3]:
        world.do("update turns set max_steps = 7, wake_at = wake_at - interval '1 minute' where id = %s", turn)
    world.do("create function refuse() returns trigger language plpgsql as $$ begin raise exception 'poison'; end $$")
    world.do(
        "create trigger poison before update on turns for each row when (old.max_steps = 7) execute function refuse()"
    )
    with world.room() as room:
        waker = Waker(room)
        for _ in range(3):
            waker.run()
        assert room.counters["wake.failed"] >= 2
    assert [world.turn(turn)["status"] for turn in turns] == ["parked", "parked", "parked", "queued"]

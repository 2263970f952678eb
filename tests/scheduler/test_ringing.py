"""The sweep rings for what a claim would find, and for nothing else."""

from __future__ import annotations

from uuid import uuid4

import pytest

from scheduler.ringing import ring_waiting
from scheduler.room import Room
from scheduler.stopping import cancel_of_disabled
from shared.store.pool import Connection
from shared.store.statements import admission, one
from shared.values import TurnClass
from tests.scheduler.world import World

FLOOD = 500
"""How much of one principal's queue is looked at."""


def _stop(world: World, scope: str, subject: str | None) -> None:
    world.do(
        "insert into stops (id, scope, subject, placed_by) values (%s, %s, %s, %s)",
        uuid4(), scope, subject, world.principal("the admin"),
    )  # fmt: skip


def _claimed(world: World, room: Room) -> int:
    """How many turns could be claimed one after another, by the product's own claim; nothing of it stays."""

    def work(connection: Connection) -> int:
        with connection.transaction(force_rollback=True):
            for number in range(100):
                picked = admission.pick(connection, tuple(TurnClass), admission.limits(world.settings))
                if picked is None:
                    return number
                params = {"session": picked["session"], "turn": picked["id"], "holder": uuid4(), "claim": uuid4()}
                one(connection, admission.CLAIM, params)
        raise AssertionError("it is never over")

    return room.database.read(work)


@pytest.mark.parametrize("scope", ["fleet", "person", "job", "profile"])
def test_nobody_is_rung_for_what_an_admin_stopped(world: World, scope: str) -> None:
    stopped = world.admit(turn_class=TurnClass.JOB)
    job = uuid4()
    world.do(
        "insert into jobs (id, name, owner, principal, cron, zone, prompt) select %s, 'j', id, id, '', '', '' from"
        " principals limit 1",
        job,
    )
    world.do("update turns set job = %s where id = %s", job, stopped)
    subject = {"fleet": None, "person": str(world.principal()), "job": str(job), "profile": "default"}[scope]
    with world.room() as room:
        assert (ring_waiting(room), _claimed(world, room)) == (1, 1)
        _stop(world, scope, subject)
        assert (ring_waiting(room), _claimed(world, room)) == (0, 0)
        assert room.counters["rings"] == 1
        world.do("update stops set lifted_at = clock_now(), lifted_by = placed_by")
        assert ring_waiting(room) == 1


def test_what_a_disabled_person_has_queued_is_not_claimed_and_ended_by_the_sweep(world: World) -> None:
    """As where the request that disabled them died right after its commit."""
    turn = world.admit()
    world.do("update principals set disabled_at = clock_now()")
    with world.room() as room:
        assert (ring_waiting(room), _claimed(world, room)) == (0, 0)
        assert cancel_of_disabled(room) == 1
        assert cancel_of_disabled(room) == 0
    assert world.turn(turn)["status"] == "cancelled"
    told = world.row("select principal, action from audit where subject = %s", str(turn))
    assert (told["principal"], told["action"]) == (None, "turn.cancelled")


def test_nobody_is_rung_for_those_who_wait_for_their_leader(world: World) -> None:
    leader, *rest = (world.admit(turn_class=TurnClass.CHILD) for _ in range(3))
    held = world.claim(leader)
    world.do("update turns set shared_key = 'k' where id = any(%s)", [leader, *rest])
    world.do(
        "insert into shared_prefixes (key, leader, leader_claim, leader_deadline)"
        " select 'k', id, claim, clock_timestamp() + interval '8 seconds' from turns where id = %s",
        held["turn"],
    )
    with world.room() as room:
        assert (ring_waiting(room), _claimed(world, room)) == (0, 0)
        world.do("update shared_prefixes set leader_deadline = clock_timestamp()")
        assert ring_waiting(room) == 1  # the class, once: no slot is free
        assert _claimed(world, room) == 2


def test_nobody_is_rung_for_who_has_reached_a_limit(world: World) -> None:
    world.changes["NIGHTSHIFT_PRINCIPAL_LIMIT"] = "1"
    world.claim(world.admit())
    world.admit()
    with world.room() as room:
        assert (ring_waiting(room), _claimed(world, room)) == (0, 0)


def test_a_flood_of_what_is_stopped_does_not_hide_what_waits_behind_it(world: World) -> None:
    """Not all of a queue is looked at: where nothing that was seen may run, each class is rung, lest it be for ever."""
    person, job = world.principal(), uuid4()
    world.do(
        "insert into jobs (id, name, owner, principal, cron, zone, prompt) values (%s, 'j', %s, %s, '', '', '')",
        job, person, person,
    )  # fmt: skip
    world.do(
        "with s as (insert into sessions (id, owner, provider, model, workspace)"
        " select gen_random_uuid(), %s, 'a', 'm', '/w' from generate_series(1, %s) returning id)"
        " insert into turns (id, session, class, requested_by, admit_key, deadline_s, max_steps, job)"
        " select gen_random_uuid(), id, 'job', %s, clock_now() - interval '1 hour', 60, 9, %s from s",
        person, FLOOD, person, job,
    )  # fmt: skip
    with world.room() as room:
        assert _seen(room) == ({TurnClass.JOB: FLOOD}, False)
        _stop(world, "job", str(job))
        world.admit()
        assert _seen(room) == ({}, True)
        assert ring_waiting(room) == len(TurnClass)
        assert _claimed(world, room) == 1


def _seen(room: Room) -> tuple[dict[TurnClass, int], bool]:
    limits = admission.limits(room.settings)

    def look(connection: Connection) -> list[tuple[str | None, int, bool]]:
        return connection.execute(admission.WAITING_CLASSES.text, dict(limits)).fetchall()

    rows = room.database.read(look)
    return {TurnClass(name): count for name, count, _ in rows if name is not None}, any(row[2] for row in rows)

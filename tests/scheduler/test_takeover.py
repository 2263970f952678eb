"""A dead worker's turns are taken over in time; a living one's never."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from tests.scheduler.world import Child, World, until

SHORT = {"NIGHTSHIFT_LEASE_S": "3", "NIGHTSHIFT_HEARTBEAT_S": "0.5"}
WORKER = "tests.scheduler.fake_worker"
Start = Callable[..., Child]


def scheduler(child: Start, world: World) -> Child:
    made = child("tests.scheduler.run", world.environment, "scheduler")
    assert made.line() == "nightshift scheduler ready"
    return made


def worker(child: Start, world: World) -> tuple[Child, UUID]:
    made = child(WORKER, world.environment)
    return made, UUID(made.ask("hello")["boot"]) if False else UUID(_boot(made))


def _boot(made: Child) -> str:
    import json

    return json.loads(made.line())["boot"]


def status(world: World, turn: UUID) -> Callable[[], Any]:
    return lambda: world.turn(turn)["status"] == "queued"


def test_a_killed_workers_turn_is_queued_again_within_two_and_a_half_seconds(world: World, child: Start) -> None:
    scheduler(child, world)
    turn = world.admit()
    made, boot = worker(child, world)
    assert UUID(made.ask("claim")["turn"]) == turn
    until(lambda: world.rows("select 1 from workers where kind = 'scheduler'"), 5, "scheduler row")
    import time

    time.sleep(1.2)
    made.send(signal.SIGKILL)
    took = until(status(world, turn), 10, "the turn is queued again")
    print("killed -> queued", took)
    assert took < 2.5
    row = world.turn(turn)
    assert (row["takeovers"], row["attempts"], row["holder"]) == (1, 1, None)
    until(lambda: world.rows("select 1 from workers where boot_id = %s and stop_reason = 'lost'", boot), 5, "marked lost")

"""A worker that no ring reaches any more is started again; one that is busy, or whose broker is away, is not.

The bug: after Valkey had been killed seven times under load, both workers lived on without asking for messages, and
fourteen thousand rings lay in their queue.
"""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import psycopg
import pytest
from celery.contrib.testing import worker as celery_worker

from deploy.drill.rig import until
from shared import doorbell, stream
from shared.store.statements import admission
from tests.ground import CLASSES, Ground
from workers.hearing import LOOKS, Hearing
from workers.look import Slots, look
from workers.process import hearing_of

QUEUE = "hearing-test"
testing: Any = celery_worker  # untyped, as Celery is


@dataclass(slots=True)
class Scene:
    client: Any
    hearing: Hearing
    free: bool = True
    ends: list[str] = field(default_factory=list[str])


def _scene(url: str) -> Scene:
    client = stream.connect(url)
    scene = Scene(client, None)  # pyright: ignore[reportArgumentType] - set in the next line
    scene.hearing = Hearing(client, [QUEUE, "none"], lambda: scene.free, lambda: scene.ends.append("end"))
    return scene


@pytest.fixture
def scene(redis_url: str) -> Generator[Scene]:
    made = _scene(redis_url)
    made.client.lpush(QUEUE, "a ring")
    yield made
    made.client.delete(QUEUE)


def test_rings_that_lie_unheard_end_the_process_once(scene: Scene) -> None:
    for _ in range(LOOKS - 1):
        scene.hearing.look()
    assert (scene.ends, scene.hearing.deaf) == ([], False)
    for _ in range(3):
        scene.hearing.look()
    assert (scene.ends, scene.hearing.deaf) == (["end"], True)


def test_one_ring_that_is_heard_is_enough(scene: Scene) -> None:
    for _ in range(LOOKS * 2):
        scene.hearing.look()
        scene.hearing.look()
        scene.hearing.heard()
    assert scene.ends == []


def test_a_worker_without_a_free_slot_is_not_deaf(scene: Scene) -> None:
    scene.free = False
    for _ in range(LOOKS * 2):
        scene.hearing.look()
    assert scene.ends == []


def test_a_queue_without_rings_makes_nobody_deaf(scene: Scene) -> None:
    scene.client.delete(QUEUE)
    for _ in range(LOOKS * 2):
        scene.hearing.look()
    assert scene.ends == []


def test_a_broker_that_is_away_makes_nobody_deaf() -> None:
    scene = _scene("redis://127.0.0.1:1/0")
    for _ in range(LOOKS * 2):
        scene.hearing.look()
    assert scene.ends == []


def test_a_crowd_that_stands_in_line_for_a_claim_is_not_deafness(
    worker: Ground, database_url: str, scene: Scene
) -> None:
    """The bug: a saturated worker with two dozen turns and forty threads in line for the next claim had slots free by
    its turns and nobody to answer, so that the consumer rightly took no ring; it was ended for that, after eight
    seconds, with all its turns."""
    slots = Slots(4, CLASSES)
    hearing = hearing_of(scene.client, [QUEUE], slots, worker.ports.life, lambda: scene.ends.append("end"))
    with ThreadPoolExecutor(4) as pool, psycopg.connect(database_url) as other, other.transaction():
        other.execute("select pg_advisory_xact_lock(%s)", (admission.CLAIM_LOCK,))
        for _ in range(4):
            pool.submit(look, worker.ports, worker.turns, slots)
        until(lambda: slots.used == slots.size, 10, "a crowd in line")
        for _ in range(LOOKS * 2):
            hearing.look()
    assert (scene.ends, slots.used, len(worker.turns)) == ([], 0, 0)
    for _ in range(LOOKS):
        hearing.look()
    assert scene.ends == ["end"], "with nobody in line it is deaf"


def test_a_ring_that_is_too_old_is_heard_though_nobody_answers_it(worker: Ground, redis_url: str, scene: Scene) -> None:
    """Thousands of them may lie there after a long rush, and are dropped one by one."""
    app = doorbell.celery_app(redis_url)
    queue = f"{QUEUE}-old"
    answered: list[str] = []

    @app.task(name=doorbell.LOOK, ignore_result=True)
    def _answer() -> None:
        answered.append("answered")

    app.send_task(doorbell.LOOK, queue=queue, expires=-1, ignore_result=True)
    hearing = hearing_of(scene.client, [QUEUE], Slots(4, CLASSES), worker.ports.life, lambda: scene.ends.append("end"))
    with testing.start_worker(app, queues=[queue], loglevel="ERROR", perform_ping_check=False):
        until(lambda: hearing.rings == 1, 10, "the old ring")
    assert answered == []

"""A worker that no ring reaches any more is started again; one that is busy, or whose broker is away, is not.

The bug: after Valkey had been killed seven times under load, both workers lived on without asking for messages, and
fourteen thousand rings lay in their queue.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import pytest

from shared import stream
from workers.hearing import LOOKS, LOOKS_AT_WORK, Hearing

QUEUE = "hearing-test"
THREADS = 3


@dataclass(slots=True)
class Scene:
    client: Any
    hearing: Hearing
    free: bool = True
    at_work: bool = False
    ends: list[str] = field(default_factory=list[str])


def _scene(url: str) -> Scene:
    client = stream.connect(url)
    scene = Scene(client, None)  # pyright: ignore[reportArgumentType] - set in the next line
    scene.hearing = Hearing(
        client, [QUEUE, "none"], THREADS, lambda: scene.free, lambda: scene.ends.append("end"), lambda: scene.at_work
    )
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


def test_a_worker_at_work_is_given_longer(scene: Scene) -> None:
    scene.at_work = True
    for _ in range(LOOKS_AT_WORK - 1):
        scene.hearing.look()
    assert scene.ends == []
    scene.hearing.look()
    assert scene.ends == ["end"]


def test_one_ring_that_is_heard_is_enough(scene: Scene) -> None:
    for _ in range(LOOKS * 2):
        scene.hearing.look()
        scene.hearing.look()
        with scene.hearing.answering():
            pass
    assert scene.ends == []


def test_a_worker_whose_threads_all_answer_rings_is_not_deaf_however_long(scene: Scene) -> None:
    """The bug: at full work each thread claims one turn after another, no ring is begun for minutes, and between two
    claims a slot looks free: a worker that did eight turns a second took itself for deaf after a minute and ended."""
    with ExitStack() as busy:
        for _ in range(THREADS):
            busy.enter_context(scene.hearing.answering())
        for _ in range(LOOKS_AT_WORK * 2):
            scene.hearing.look()
        assert scene.ends == []
    for _ in range(LOOKS):
        scene.hearing.look()
    assert scene.ends == ["end"]


def test_a_worker_that_may_not_claim_is_not_deaf(scene: Scene) -> None:
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

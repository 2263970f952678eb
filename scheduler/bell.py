"""The Celery side: consumes `nightshift.chore` from the queue `chores` and asks the chore's thread; nothing more.

The invariant: the consumer may die, stall or lose its broker at any time, and only hints are lost: chores have timers.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Mapping
from typing import Any

import structlog
from celery import Celery

from scheduler.loops import Loop
from scheduler.room import Room
from shared.doorbell import CHORE
from shared.values import QUEUES, TurnClass

log = structlog.get_logger("scheduler")


def consume(app: Celery, room: Room, loops: Mapping[str, Loop]) -> threading.Thread:
    """Start a thread that keeps a Celery worker running until the room stops, with a growing pause after each end."""

    def chore(name: str) -> None:
        loop = loops.get(name)
        if loop is None:
            log.warning("chore.unknown", chore=str(name)[:100])
            return
        room.counters["chores.rung"] += 1
        loop.asked.set()

    app.task(name=CHORE, ignore_result=True)(chore)  # pyright: ignore[reportUnknownMemberType] - untyped in celery

    worker: list[Any] = []

    def keep() -> None:
        pause = 0.5
        while not room.stop.is_set():
            rung = room.counters["chores.rung"]
            worker[:] = [_worker(app)]
            _run(worker[0])
            pause = 0.5 if room.counters["chores.rung"] > rung else min(pause * 2, 10.0)
            if not room.stop.is_set():
                room.count("consumer.ended", pause_s=pause)
            room.stop.wait(pause)

    def end() -> None:
        room.stop.wait()
        for controller in worker:
            controller.stop()

    threading.Thread(target=end, name="chores-end", daemon=True).start()
    thread = threading.Thread(target=keep, name="chores-consumer", daemon=True)
    thread.start()
    return thread


def _worker(app: Any) -> Any:
    """A Celery worker, unmanaged: it lives in a thread and touches no signal handler of the process."""
    return app.WorkController(
        hostname=f"scheduler-{os.getpid()}@{socket.gethostname()}",
        queues=QUEUES[TurnClass.CHORE],
        pool="solo",
        concurrency=1,
        without_mingle=True,
        without_gossip=True,
    )


def _run(worker: Any) -> None:
    try:
        worker.start()
    except Exception:
        log.exception("consumer.failed")

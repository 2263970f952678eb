"""A worker and a sweep that live while a test runs: threads over a test's own ground, each part the real one."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Generator

from scheduler.room import Room
from scheduler.sweep import Sweep
from shared import stream
from shared.doorbell import Doorbell, celery_app
from tests.ground import CLASSES, Ground
from workers.hints import Hints
from workers.look import Slots, look


@contextlib.contextmanager
def room(worker: Ground) -> Generator[Room]:
    """What the scheduler's chores are given, over the same servers."""
    app = celery_app(worker.settings.redis_url, connections=2)
    made = Room(worker.settings, worker.database, Doorbell(app), stream.connect(worker.settings.redis_url))
    try:
        yield made
    finally:
        made.stop.set()
        app.close()


@contextlib.contextmanager
def working(worker: Ground, slots: int = 4) -> Generator[None]:
    """Slots that look for work ten times a second, and the question for cancels once a second."""
    stop = threading.Event()
    shared = Slots(slots, CLASSES)
    hints = Hints(worker.turns, worker.database, worker.ports.life, stream.connect(worker.settings.redis_url))

    def serve() -> None:
        while not stop.wait(0.1):
            look(worker.ports, worker.turns, shared)

    threads = [threading.Thread(target=serve, daemon=True) for _ in range(slots)]
    hints.start()
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        hints.stop()
        for thread in threads:
            thread.join(30)


@contextlib.contextmanager
def sweeping(worker: Ground, every_s: float) -> Generator[Room]:
    """The sweep as it comes by its own timer (2 s where the broker is silent). Yields its counters' room."""
    with room(worker) as made:
        sweep = Sweep(made)
        thread = threading.Thread(target=_each(made, every_s, sweep.run), daemon=True)
        thread.start()
        try:
            yield made
        finally:
            made.stop.set()
            thread.join(30)


def _each(made: Room, every_s: float, run: Callable[[], object]) -> Callable[[], None]:
    def loop() -> None:
        while not made.stop.is_set():
            run()
            made.stop.wait(every_s)

    return loop


def within(bound_s: float) -> float:
    """A bound in seconds for a machine with a core for each runnable task, widened for a busier one."""
    return bound_s * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def seconds(work: Callable[[], object]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began

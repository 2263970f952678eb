"""One scheduler process: a life, the looks, a thread a chore, and a Celery consumer that asks them. Two may run."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable

import structlog

from scheduler import bell, deliveries, looks, takeover, tick
from scheduler.clock import ClockMover
from scheduler.index import Indexer
from scheduler.loops import Loop
from scheduler.room import Room
from scheduler.sweep import Sweep
from shared import logs, stream
from shared import settings as settings_module
from shared.doorbell import Doorbell, celery_app
from shared.errors import WRONG_SETTINGS, NightshiftError, SchemaMismatch, SettingsError, StoreUnavailable
from shared.life import Life
from shared.settings import Settings
from shared.store import revision
from shared.store.pool import Database

SILENCE_S = 2.0
INDEX_S = 5.0
CLOCK_S = 0.25
STOP_S = 2.0
log = structlog.get_logger("scheduler")


def main(argv: list[str]) -> int:
    """`nightshift scheduler`: runs until SIGTERM or SIGINT. Returns 0, or 78 where a restart would not help."""
    try:
        if argv:
            raise SettingsError(f"nightshift scheduler takes no arguments, and was given {' '.join(argv)}")
        settings = settings_module.load()
        for name in ("database_url", "redis_url"):
            if not getattr(settings, name):
                raise SettingsError(f"NIGHTSHIFT_{name.upper()} is not set")
        logs.configure(settings.log_level)
        return serve(settings)
    except (SettingsError, SchemaMismatch) as error:
        sys.stderr.write(f"{error.code}: {error.message}\n")
        return WRONG_SETTINGS


def serve(settings: Settings) -> int:
    """Everything between the settings and the exit code. A database that is away is waited for, however long."""
    app = celery_app(settings.redis_url)
    life = Life(settings, "scheduler", 0, "chore")
    room = Room(
        settings,
        Database(settings.database_url, size=8, wait_s=5.0, patience_s=5.0),
        Doorbell(app),
        stream.connect(settings.redis_url, connections=4),
        boot=life.boot_id,
    )
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: room.stop.set())
    threads: list[threading.Thread] = []
    loops: dict[str, Loop] = {}
    try:
        _wait_for_schema(room)
        while not room.stop.is_set() and not life.start(0.5):
            continue
        found = looks.Found()
        loops = chores(room, found)
        threads.append(threading.Thread(target=looks.look_on, args=(room, found), name="looks", daemon=True))
        threads[0].start()
        for loop in loops.values():
            loop.start()
        threads.append(bell.consume(app, room, loops))
        if not room.stop.is_set():
            sys.stdout.write("nightshift scheduler ready\n")
            sys.stdout.flush()
        room.stop.wait()
        return 0
    finally:
        _end(room, life, [*threads, *(loop.thread for loop in loops.values())])


def chores(room: Room, found: looks.Found) -> dict[str, Loop]:
    """A thread for each chore, by the name it is rung by; the looks ring `takeover` themselves."""
    sweep = Sweep(room)
    table: dict[str, tuple[float, Callable[[], object]]] = {
        "sweep": (SILENCE_S, sweep.run),
        "tick": (SILENCE_S, lambda: tick.run_due(room)),
        "deliver": (SILENCE_S, lambda: deliveries.run_due(room)),
        "index": (INDEX_S, Indexer(room).run),
    }
    if room.settings.test_clock:
        table["clock"] = (CLOCK_S, ClockMover(room).run)
    loops = {name: Loop(room, name, period, run) for name, (period, run) in table.items()}
    loops["takeover"] = Loop(
        room, "takeover", SILENCE_S, lambda: takeover.take_over(room, found.dead), asked=found.changed
    )
    return loops


def _wait_for_schema(room: Room) -> None:
    """Return when the database answers and is at this code's revision. Raises SchemaMismatch."""
    while not room.stop.is_set():
        try:
            room.database.read(revision.check)
        except StoreUnavailable as error:
            log.warning("scheduler.no_database", detail=error.message)
            room.stop.wait(0.5)
        else:
            return


def _end(room: Room, life: Life, threads: list[threading.Thread]) -> None:
    """Stop everything within about ten seconds, whatever hangs; a thread that still waits dies with the process."""
    room.stop.set()
    room.database.stop.set()
    share = STOP_S / max(len(threads), 1)
    for thread in threads:
        thread.join(share)
    try:
        life.stop("stopped")
        room.database.close()
    except NightshiftError as error:
        log.warning("scheduler.unclean_end", detail=error.message)
    log.info("scheduler.ended", **room.counters)

"""One worker process: the Celery consumer on threads, the process's life, and how both end.

SIGTERM drains: no new claims, each turn ends its step and is handed back; past `drain_s` the calls in flight are cut.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import psycopg
import redis
import structlog
from celery import signals as celery_signals

from shared import doorbell, logs, redact, secrets, stream
from shared import settings as settings_module
from shared.errors import FAILED, NightshiftError, exit_code
from shared.life import Life
from shared.settings import Settings
from shared.store import revision
from shared.store.pool import Database
from shared.values import TurnClass
from workers import hooks, telling, tracing
from workers.hearing import Hearing
from workers.held import Interrupt
from workers.hints import Hints, Turns
from workers.look import Slots, look
from workers.manners.fleet import Fleet
from workers.manners.workers import Workers
from workers.mcp.servers import Servers
from workers.pause import Pauses
from workers.ports import Ports
from workers.providers.routes import Routes
from workers.publish import Publisher
from workers.sandbox import wall
from workers.sandbox.background import BACKGROUNDS
from workers.tools import child
from workers.waiting import rules

POOL_SIZE = 10
POOL_WAIT_S = 3.0
"""Who waits for a connection asks anew after so long: only asking makes a pool that gave up in an outage try again."""
log = structlog.get_logger("worker")
signals: Any = celery_signals  # untyped, as Celery is


def main(argv: list[str]) -> int:
    """`nightshift worker [--slots N]`. 78: a setting is wrong; 1: a part was not there, start me again."""
    try:
        settings = settings_module.load()
        logs.configure(settings.log_level)
        return _serve(_with_slots(settings, argv))
    except NightshiftError as error:
        sys.stderr.write(f"{error.code}: {error.message}\n")
        return exit_code(error)
    except psycopg.OperationalError as error:
        sentence, code = revision.unreachable(error)
        sys.stderr.write(f"database_unavailable: {sentence}\n")
        return code


def _with_slots(settings: Settings, argv: list[str]) -> Settings:
    if len(argv) == 2 and argv[0] == "--slots":
        return Settings.model_validate({**settings.model_dump(), "slots": argv[1]})
    return settings


def _serve(settings: Settings) -> int:
    rules.demands(settings.approve_tools)  # a wrong one stops the start, not the first call of that tool
    hooks.use(hooks.load(settings.hooks))
    with psycopg.connect(settings.direct_url, connect_timeout=5) as connection:
        revision.check(connection)
    classes = tuple(TurnClass(name.strip()) for name in settings.classes.split(","))
    life = Life(settings, "worker", settings.slots, settings.classes)
    life.start()
    app = doorbell.celery_app(settings.redis_url, connections=settings.slots + 8)
    redis_client = stream.connect(settings.redis_url, connections=32)
    database = Database(settings.database_url, size=POOL_SIZE, wait_s=POOL_WAIT_S)
    routes = routes_of(settings, database)
    routes.check()
    telemetry, stop_telling = telling.begin(settings, life.boot_id)
    content = tracing.begin(settings)
    ports = Ports(
        settings=settings,
        database=database,
        routes=routes,
        publisher=Publisher(redis_client, life.may_act),
        life=life,
        doorbell=doorbell.Doorbell(app),
        pauses=Pauses(settings.pause_at),
        telemetry=telemetry,
        content=content,
    )
    turns = Turns()
    hints = Hints(turns, ports.database, life, redis_client)
    hints.start()
    child.LAUNCHER.start()
    threading.Thread(target=wall.way, name="wall", daemon=True).start()  # tried before the first session asks for it
    redact.REDACTOR.learn(secrets.known(settings))
    servers = Servers(settings)
    servers.start()
    queues = sorted({doorbell.queue_of(c) for c in classes})
    slots = Slots(settings.slots, classes)
    hearing = hearing_of(redis_client, queues, slots, life, _end_me)
    _answer_the_doorbell(app, ports, turns, slots)
    BACKGROUNDS.calls(partial(look, ports, turns, slots))
    _drain_on_shutdown(ports, turns)
    hearing.start()
    try:
        code = _consume(app, settings, queues, life)
    finally:
        hearing.stop()
        hints.stop()
        servers.close()
        stop_telling()
        if content is not None:
            content.close()
        ports.publisher.close()
        life.stop("drained" if life.draining else "consumer ended")
        routes.close()
        ports.database.close()
    return FAILED if hearing.deaf else code


def _end_me() -> None:
    """As whoever restarts this process would: what runs is ended in order, and the next one hears."""
    os.kill(os.getpid(), signal.SIGTERM)


MANNERS_WAIT_S = 0.5
"""For Redis, before a call goes out by what this process knows alone."""


def routes_of(settings: Settings, database: Database, environ: Mapping[str, str] = os.environ) -> Routes:
    """The providers that calls go to, with a connection of its own to what the fleet knows of their keys."""
    client = stream.connect(settings.redis_url, connections=16, timeout_s=MANNERS_WAIT_S)
    return Routes(settings, Fleet(client, Workers(database).count), environ)


def hearing_of(
    client: redis.Redis, queues: Sequence[str], slots: Slots, life: Life, on_deaf: Callable[[], None]
) -> Hearing:
    """Counts each ring where the consumer takes it from the broker: in its own thread, also one that is too old (Celery
    calls that revoked), which is dropped without anybody's answer."""
    hearing = Hearing(client, queues, lambda: slots.used < slots.size and not life.draining, on_deaf)
    for taken in (signals.task_received, signals.task_revoked):
        taken.connect(hearing.heard, weak=False)
    return hearing


def _answer_the_doorbell(app: Any, ports: Ports, turns: Turns, slots: Slots) -> None:
    @app.task(name=doorbell.LOOK, ignore_result=True)
    def _answer() -> None:
        look(ports, turns, slots)

    # One for all threads: Celery would make one a thread, a millisecond each, and nothing is ever stored in it.
    _answer.backend = app.backend


def _drain_on_shutdown(ports: Ports, turns: Turns) -> None:
    def begin(**_: Any) -> None:
        if ports.life.draining:
            return
        ports.life.drain()
        for held in turns.all():
            held.interrupt(Interrupt.DRAIN)
        threading.Thread(target=_cut_late, args=(ports, turns), name="drain", daemon=True).start()

    signals.worker_shutting_down.connect(begin, weak=False)


def _cut_late(ports: Ports, turns: Turns) -> None:
    """A turn claimed in the moment of the signal is told too; past the bound its call is cut."""
    end = time.monotonic() + ports.settings.drain_s
    while len(turns) and time.monotonic() < end:
        for held in turns.all():
            held.interrupt(Interrupt.DRAIN)
        time.sleep(0.1)
    for held in turns.all():
        held.cut(Interrupt.DRAIN)


def _leave_logging_alone(**_: Any) -> None:
    """That this is connected keeps Celery from configuring the root logger."""


def _consume(app: Any, settings: Settings, queues: list[str], life: Life) -> int:
    """Celery's own worker, in the main thread, so that its signal handlers are the process's."""

    def ready(**_: Any) -> None:
        sys.stdout.write(f"nightshift worker ready {life.boot_id}\n")
        sys.stdout.flush()

    signals.worker_ready.connect(ready, weak=False)
    signals.setup_logging.connect(_leave_logging_alone, weak=False)
    logging.getLogger("celery").setLevel(logging.WARNING)
    worker = app.Worker(
        pool="threads",
        concurrency=settings.slots,
        queues=queues,
        hostname=f"worker-{life.boot_id.hex[:12]}@{os.uname().nodename}",
        loglevel="WARNING",
        without_gossip=True,
        without_mingle=True,
        quiet=True,
        task_events=False,
    )
    with contextlib.suppress(SystemExit):
        worker.start()
    return int(worker.exitcode or 0)

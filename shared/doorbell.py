"""The doorbell: a Celery message, "look, work waits". A hint, never state: it may be lost, doubled or late.

`ring` never raises and never waits longer than about a second; after a failure it stays silent for one second, so
that a broker that is down costs a POST nothing. What was not rung is found by the sweep.
"""

from __future__ import annotations

import threading
import time
from typing import Any
from urllib.parse import parse_qs, urlsplit

import structlog
from celery import Celery
from celery.worker import state

from shared.values import QUEUES, TurnClass

LOOK = "nightshift.look"
CHORE = "nightshift.chore"
EXPIRES_S = 60
MOST_REVOKED = 1_000
"""Names of rings that came too late: Celery would keep 50,000 of them for three hours, 12 MB, to know them again."""
_SILENCE_S = 1.0
log = structlog.get_logger("doorbell")


def broker_url(redis_url: str) -> str:
    """Kombu's form of a redis-py URL: `unix:///path?password=…&db=0` becomes `redis+socket://…`."""
    parts = urlsplit(redis_url)
    if parts.scheme != "unix":
        return redis_url
    query = parse_qs(parts.query)
    password = parts.password or query.get("password", [""])[0]
    host = f":{password}@" if password else ""
    return f"redis+socket://{host}{parts.path}?virtual_host={query.get('db', ['0'])[0]}"


def celery_app(redis_url: str, *, connections: int = 10) -> Any:
    """The one Celery configuration (untyped, as Celery is): JSON, early acks, no results, bounded sockets.
    `connections` bounds the pool."""
    revoked: Any = state.revoked
    revoked.maxlen = MOST_REVOKED
    app: Any = Celery("nightshift", broker=broker_url(redis_url), set_as_current=False)
    app.conf.update(
        task_serializer="json",
        accept_content=["json"],
        task_ignore_result=True,
        result_backend=None,
        task_acks_late=False,
        worker_prefetch_multiplier=1,
        task_default_queue=QUEUES[TurnClass.INTERACTIVE],
        task_create_missing_queues=True,
        broker_pool_limit=connections,
        broker_connection_timeout=1.0,
        broker_connection_retry=True,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_transport_options={
            "socket_timeout": 2.0,
            "socket_connect_timeout": 1.0,
            "max_connections": connections + 10,
            "visibility_timeout": 3600,
            "retry_on_timeout": False,
        },
        redis_socket_timeout=2.0,
        worker_hijack_root_logger=False,
        worker_redirect_stdouts=False,
        worker_enable_remote_control=False,
        worker_send_task_events=True,
        enable_utc=True,
    )
    return app


def queue_of(turn_class: TurnClass) -> str:
    """Where turns of that class are rung for. Housekeeping has no queue of its own that workers read."""
    return QUEUES[TurnClass.JOB if turn_class is TurnClass.CHORE else turn_class]


class Doorbell:
    """Rings the queue of a class; one a process."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self._lock = threading.Lock()
        self._silent_until = 0.0
        self.rung = 0
        self.missed = 0

    def ring(self, turn_class: TurnClass) -> bool:
        """Ring once. True if the broker took it; False costs nothing but up to a second until the sweep looks."""
        return self._send(LOOK, queue_of(turn_class), EXPIRES_S)

    def chore(self, name: str) -> bool:
        """Ask the scheduler for one chore (tick, sweep, index, deliver) by name."""
        return self._send(CHORE, QUEUES[TurnClass.CHORE], 10, name)

    def _send(self, task: str, queue: str, expires: int, *args: Any) -> bool:
        if time.monotonic() < self._silent_until:
            self.missed += 1
            return False
        try:
            self._app.send_task(task, args=args, queue=queue, expires=expires, retry=False, ignore_result=True)
        except Exception as error:  # noqa: BLE001 - kombu raises its transports' own errors; a hint may always be lost
            with self._lock:
                self._silent_until = time.monotonic() + _SILENCE_S
                self.missed += 1
            log.warning("doorbell.missed", queue=queue, error=type(error).__name__)
            return False
        self.rung += 1
        return True

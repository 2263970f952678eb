"""Beat: rings the scheduler's chores, each by its own rhythm, and nothing more. Two may run; it keeps no file.

The invariant: it decides nothing. Each chore is idempotent: a ring too many costs a look, one too few a second.
"""

from __future__ import annotations

import logging
import signal
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

from celery import beat

from shared import logs
from shared import settings as settings_module
from shared.doorbell import CHORE, celery_app
from shared.errors import WRONG_SETTINGS, SettingsError
from shared.settings import Settings
from shared.values import QUEUES, TurnClass

RHYTHM_S: dict[str, float] = {"sweep": 1.0, "tick": 1.0, "deliver": 2.0, "index": 5.0}
EXPIRES_S = 10
_SILENCE_S = 10.0


def main(argv: list[str]) -> int:
    """`nightshift beat`: runs until SIGTERM or SIGINT. Returns 0, or 78 where a restart would not help."""
    try:
        if argv:
            raise SettingsError(f"nightshift beat takes no arguments, and was given {' '.join(argv)}")
        settings = settings_module.load()
        if not settings.redis_url:
            raise SettingsError("NIGHTSHIFT_REDIS_URL is not set")
    except SettingsError as error:
        sys.stderr.write(f"{error.code}: {error.message}\n")
        return WRONG_SETTINGS
    logs.configure(settings.log_level)
    logging.getLogger("celery.beat").addFilter(_one_a_while())
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _leave)
    ring_on(settings)
    return 0


def ring_on(settings: Settings) -> None:
    """Ring until the process is told to end. The plain scheduler of Celery's beat lives in memory: no schedule file."""
    app = celery_app(settings.redis_url, connections=2)
    app.conf.update(
        task_publish_retry=False,  # the next ring is a second away
        beat_schedule={
            name: {
                "task": CHORE,
                "schedule": seconds,
                "args": (name,),
                "options": {"queue": QUEUES[TurnClass.CHORE], "expires": EXPIRES_S, "ignore_result": True},
            }
            for name, seconds in RHYTHM_S.items()
        },
    )
    service: Any = beat.Service(app, max_interval=1, scheduler_cls=beat.Scheduler)
    sys.stdout.write("nightshift beat ready\n")
    sys.stdout.flush()
    service.start()


def _one_a_while() -> Callable[[logging.LogRecord], bool]:
    """A filter: Celery's beat logs two stacks with each ring that the broker does not take; an outage is one fact."""
    next_at = 0.0

    def passes(record: logging.LogRecord) -> bool:
        nonlocal next_at
        if time.monotonic() < next_at:
            return False
        next_at = time.monotonic() + _SILENCE_S
        if record.exc_info:
            record.msg, record.args = f"beat could not ring: {record.exc_info[1]!r}", ()
            record.exc_info = None
        return True

    return passes


def _leave(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the shape of a signal handler
    """Raised, not noted: beat waits without end for a broker that is down, and this ends that wait too."""
    raise SystemExit(0)

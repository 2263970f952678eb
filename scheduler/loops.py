"""One thread a chore: it runs when rung, and by its own timer when nobody rings; rings meanwhile are one.

The invariant: no chore ends its thread. A database that is away, or a fault, costs one pass; the next comes in time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import structlog

from scheduler.room import Room
from shared.errors import StoreUnavailable

log = structlog.get_logger("scheduler")


class Loop:
    """`period_s` is how long the broker may be silent before the chore runs by itself."""

    def __init__(
        self,
        room: Room,
        name: str,
        period_s: float,
        run: Callable[[], object],
        asked: threading.Event | None = None,
    ) -> None:
        self.name = name
        self.asked = asked or threading.Event()
        self._room = room
        self._period_s = period_s
        self._run = run
        self.thread = threading.Thread(target=self._loop, name=f"chore-{name}", daemon=True)

    def start(self) -> None:
        self.thread.start()

    def _loop(self) -> None:
        while not self._room.stop.is_set():
            self.asked.clear()
            try:
                self._run()
                self._room.counters[f"chore.{self.name}"] += 1
            except StoreUnavailable as error:
                self._room.count("chore.no_database", chore=self.name, detail=error.message)
            except Exception:
                self._room.counters["chore.failed"] += 1
                log.exception("chore.failed", chore=self.name)
            self.asked.wait(self._period_s)

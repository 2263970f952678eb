"""The sweep: finds what a lost hint, a dead process or an outage left behind. Each part stands alone and may repeat."""

from __future__ import annotations

from collections.abc import Callable

import structlog

from scheduler import budgets, counting, idleness, parks, stopping, takeover, titles, upkeep, warmth
from scheduler.ringing import ring_waiting
from scheduler.room import Room
from scheduler.wake import Waker
from shared.boottime import boottime
from shared.errors import StoreUnavailable

SLOW_S = 30.0
PARKS_S = 5.0
IDLE_S = 2.0
log = structlog.get_logger("scheduler")


class Sweep:
    """One process's sweep; the dearer duties run more rarely. Not shared between threads."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._waker = Waker(room)
        self._slow_at = self._idle_at = self._parks_at = 0.0
        self._zoned = False

    def run(self) -> None:
        """One pass. A part that fails is logged and costs the others nothing; raises StoreUnavailable."""
        parts: list[Callable[[], object]] = [
            lambda: takeover.take_orphans(self._room),
            self._waker.run,
            self._budgets,
            lambda: parks.end_left(self._room),
            lambda: stopping.cancel_stopped(self._room),
            lambda: stopping.cancel_of_disabled(self._room),
            lambda: ring_waiting(self._room),
            lambda: warmth.keep(self._room),
        ]
        if boottime() >= self._idle_at:
            self._idle_at = boottime() + IDLE_S
            parts += [lambda: upkeep.fold_idle(self._room), lambda: idleness.compact(self._room)]
            parts.append(lambda: titles.name(self._room))
        if boottime() >= self._parks_at:
            self._parks_at = boottime() + PARKS_S
            parts.append(lambda: parks.rederive(self._room))
        if boottime() >= self._slow_at:
            self._slow_at = boottime() + SLOW_S
            parts += [lambda: upkeep.forget(self._room), lambda: upkeep.report(self._room)]
        parts.append(lambda: counting.write(self._room))
        for part in parts:
            if self._room.stop.is_set():
                return
            try:
                part()
            except StoreUnavailable:
                raise
            except Exception:
                self._room.counters["sweep.part_failed"] += 1
                log.exception("sweep.part_failed")

    def _budgets(self) -> None:
        if not self._zoned:
            budgets.set_zone(self._room)
            self._zoned = True
        budgets.settle(self._room)

"""Moves the test clock, alone: in steps of at most 30 seconds, with everything run to rest after each.

The invariant: one scheduler moves at a time (an advisory lock), and a step is taken only after what the last one made
due has come to rest or has been waited for, so a night passes as a night. A jump is the outage: one step, then rest.
"""

from __future__ import annotations

from collections.abc import Callable

import httpx
import psycopg
import structlog
from psycopg.rows import DictRow

from scheduler import deliveries, tick, warmth
from scheduler.ringing import ring_waiting
from scheduler.room import Room
from scheduler.wake import Waker
from shared.boottime import boottime
from shared.store.pool import Connection
from shared.store.statements import one, schedule

STEP_S = 30.0
IN_FLIGHT_S = 10.0
LOCK = 7_231_003
log = structlog.get_logger("scheduler")


class ClockMover:
    """Holds one connection for the lock while it moves. Not shared between threads."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._waker = Waker(room)
        self._client = httpx.Client(timeout=2.0)
        self._told: float | None = None

    def run(self) -> None:
        """Move the clock to its target, if it is not there and nobody else moves it."""
        state = self._room.database.read(_read)
        if state["offset_s"] >= state["target_s"] and self._told == state["offset_s"]:
            return
        with psycopg.connect(self._room.settings.direct_url, autocommit=True, connect_timeout=3) as connection:
            locked = connection.execute("select pg_try_advisory_lock(%s)", (LOCK,)).fetchone()
            if locked and locked[0]:
                self._tell(state["offset_s"])
                self._move(connection)

    def _move(self, connection: Connection) -> None:
        while not self._room.stop.is_set():
            moved = one(connection, schedule.CLOCK_MOVE, {"step_s": STEP_S})
            if moved is None:
                return
            self._tell(moved["offset_s"])
            self._rest()

    def _rest(self) -> None:
        """Tick, wake, deliver and ring until nothing more is due, waiting for running turns a bounded while."""
        parts: tuple[Callable[[], object], ...] = (
            lambda: tick.run_due(self._room),
            self._waker.run,
            lambda: deliveries.run_due(self._room),
            lambda: ring_waiting(self._room),
        )
        warmth.keep(self._room, STEP_S + warmth.EARLY_S)  # the next step may be past the end
        end = boottime() + IN_FLIGHT_S
        pause = 0.01
        while not self._room.stop.is_set():
            unrest = self._room.database.read(_unrest)
            if not any(unrest.values()):
                return
            if boottime() >= end:
                self._room.count("clock.not_at_rest", **unrest)
                return
            for part in parts:
                part()
            self._room.stop.wait(pause)
            pause = min(pause * 1.5, 0.1)

    def _tell(self, offset_s: float) -> None:
        """The rehearsal provider reads the same clock: without this its cache would never grow cold."""
        settings = self._room.settings
        if settings.rehearsal and settings.provider_base_url:
            try:
                url = f"{settings.provider_base_url.rstrip('/')}/rehearsal/clock"
                headers = {"x-rehearsal-token": settings.rehearsal_token}
                self._client.post(url, json={"offset_s": offset_s}, headers=headers).raise_for_status()
            except httpx.HTTPError as error:
                self._room.count("clock.provider_not_told", error=type(error).__name__)
                self._told = None
                return
        self._told = offset_s


def _read(connection: Connection) -> DictRow:
    state = one(connection, schedule.CLOCK_READ, {})
    assert state is not None
    return state


def _unrest(connection: Connection) -> DictRow:
    counts = one(connection, schedule.UNREST, {})
    assert counts is not None
    return counts

"""Wakes parked turns whose time has come.

The invariant: a park past its time is found by the next pass; one that an earlier pass should have seen and did not
wake is counted as `wake_missed`, which must stay zero.
"""

from __future__ import annotations

from datetime import datetime

from psycopg.rows import DictRow

from scheduler.room import Room
from scheduler.rows import BATCH, GONE, Did, Result, each
from shared.store.intake import fetch
from shared.store.pool import Connection
from shared.store.statements import every, one, schedule, turn_end
from shared.values import TurnClass

MISSED_S = 5.0


class Waker:
    """Remembers when its last whole pass looked, by the clock that parks are kept by."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._looked_at: datetime | None = None

    def run(self) -> int:
        """Wake what is due; returns how many woke."""
        room = self._room
        each(room, "timeless", _load_timeless, self._give_time)
        now = room.database.read(_now)
        before = self._looked_at
        tally = each(room, "wake", _load_due, lambda connection, row: self._wake(connection, row, before))
        whole = sum(tally.values()) < BATCH and not tally[Did.LOCKED] and not tally["failed"]
        self._looked_at = now if whole else None
        return tally[Did.DONE]

    def _wake(self, connection: Connection, row: DictRow, before: datetime | None) -> Result:
        """Lock first, look again in a later statement: a re-check in the same one loses wake-ups even so."""
        one(connection, turn_end.LOCK_TURN, {"turn": row["id"]})
        woken = one(connection, turn_end.WAKE, {"turn": row["id"]})
        if woken is None:
            return GONE
        turn_class = TurnClass(woken["class"])
        missed = before is not None and (before - row["wake_at"]).total_seconds() > MISSED_S

        def then() -> None:
            self._room.count("turn.woken", turn=str(row["id"]))
            if missed:
                self._room.count("wake_missed", turn=str(row["id"]))
            self._room.doorbell.ring(turn_class)

        return Result(Did.DONE, then)

    def _give_time(self, connection: Connection, row: DictRow) -> Result:
        one(connection, turn_end.LOCK_TURN, {"turn": row["id"]})
        if one(connection, schedule.WAKE_TIMELESS, {"turn": row["id"]}) is None:
            return GONE
        return Result(Did.DONE, lambda: self._room.count("wake_missed", turn=str(row["id"]), why="no time to wake"))


def _load_due(connection: Connection, limit: int) -> list[DictRow]:
    return every(connection, schedule.WAKE_TIMES, {"limit": limit})


def _load_timeless(connection: Connection, limit: int) -> list[DictRow]:
    return every(connection, schedule.TIMELESS_PARKS, {"limit": limit})


def _now(connection: Connection) -> datetime:
    row = fetch(connection, "select clock_now() as now", ())
    assert row is not None
    return row["now"]

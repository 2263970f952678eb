"""Money that many turns share, where nobody holds the turn: what a dead or parked one had drawn comes back, what waits
for room is woken, people are told how far a window is used.

The invariant: a block comes back once, under the lock of its turn's session, so that nobody claims the turn meanwhile.
"""

from __future__ import annotations

from functools import partial

import structlog
from psycopg.rows import DictRow

from scheduler.room import Room
from scheduler.rows import GONE, LOCKED, Did, Result, each
from shared.store.pool import Connection
from shared.store.statements import budgets, every, one, run, turn_end
from shared.values import TurnClass

log = structlog.get_logger("budgets")


def settle(room: Room) -> None:
    """One pass: give back first, so that what it frees wakes who waits for it."""
    give_back(room)
    wake(room)
    tell(room)


def give_back(room: Room) -> int:
    """Book and free the blocks of turns that nobody holds; of how many turns."""

    def act(connection: Connection, row: DictRow) -> Result:
        if one(connection, turn_end.LOCK_SESSION_SKIP, row) is None:
            return LOCKED
        run(connection, budgets.LOCK_WINDOWS, {"turn": row["id"]})
        closed = one(connection, budgets.CLOSE_DRAWS, {"turn": row["id"], "held": False})
        return GONE if closed is None else Result(Did.DONE)

    return each(room, "draws", lambda c, limit: every(c, budgets.LEFT_DRAWS, {"limit": limit}), act)[Did.DONE]


def wake(room: Room) -> int:
    """Wake who waits for room under a shared cap where there is some; how many. They look themselves whose it is."""

    def act(connection: Connection, row: DictRow) -> Result:
        one(connection, turn_end.LOCK_TURN, {"turn": row["id"]})
        woken = one(connection, budgets.WAKE_FOR_BUDGET, {"turn": row["id"]})
        if woken is None:
            return GONE
        return Result(Did.DONE, partial(_woken, room, woken))

    return each(room, "short", lambda c, limit: every(c, budgets.SHORT_OF_BUDGET, {"limit": limit}), act)[Did.DONE]


def tell(room: Room) -> int:
    """A line in the audit and in the log for each window that has passed 50, 80 or 100 %; how many. Once each."""

    def act(connection: Connection, row: DictRow) -> Result:
        detail = f"${row['spent_usd']:.4f} of ${row['cap_usd']} spent"
        if one(connection, budgets.TELL_BUDGET, {**row, "detail": detail}) is None:
            return GONE
        return Result(Did.DONE, partial(_told, room, row))

    return each(room, "budgets", lambda c, limit: every(c, budgets.BUDGETS_TO_TELL, {"limit": limit}), act)[Did.DONE]


def set_zone(room: Room) -> None:
    """Windows begin at midnight in the team's zone, which is this process's setting."""
    values = {"zone": room.settings.team_zone}
    if room.database.read(lambda c: one(c, budgets.SET_ZONE, values)) is not None:
        log.info("budgets.zone", zone=room.settings.team_zone)


def _woken(room: Room, row: DictRow) -> None:
    room.count("turn.woken", turn=str(row["id"]), why="budget")
    room.doorbell.ring(TurnClass(row["class"]))


def _told(room: Room, row: DictRow) -> None:
    room.count("budget.told", scope=row["scope"], subject=row["id"], window=row["window"], percent=row["percent"])

"""Cancels what an admin stopped together with its trees: what the request that placed the stop did not get to."""

from __future__ import annotations

from psycopg.rows import DictRow

from scheduler.room import Room
from scheduler.rows import GONE, Did, Result, each
from shared.store import cancel
from shared.store.pool import Connection
from shared.store.statements import every, stops


def cancel_stopped(room: Room) -> int:
    """Cancel a batch of turns from before a standing stop that cancels. Returns how many were."""

    def act(connection: Connection, row: DictRow) -> Result:
        try:
            found = cancel.cancel(connection, row["id"], row["placed_by"])
        except cancel.TurnOver:
            return GONE

        def then() -> None:
            room.count("turn.stopped", turn=str(row["id"]), to=found.status)
            room.tell_child(row["id"])
            if found.woken is not None and found.woken.turn_class is not None:
                room.doorbell.ring(found.woken.turn_class)

        return Result(Did.DONE, then)

    def load(connection: Connection, limit: int) -> list[DictRow]:
        return every(connection, stops.DOOMED, {"stop": None, "limit": limit})

    return each(room, "stopped", load, act)[Did.DONE]

"""Cancels what an admin stopped together with its trees, and what was queued by somebody who is disabled: what the
request that said so did not get to."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from psycopg.rows import DictRow

from scheduler.room import Room
from scheduler.rows import GONE, Did, Result, each
from shared.store import cancel, people
from shared.store.cancel import Cancelled
from shared.store.pool import Connection
from shared.store.statements import every, stops


def cancel_stopped(room: Room) -> int:
    """Cancel a batch of turns from before a standing stop that cancels. Returns how many were."""

    def load(connection: Connection, limit: int) -> list[DictRow]:
        return every(connection, stops.DOOMED, {"stop": None, "limit": limit})

    def end(connection: Connection, row: DictRow) -> Cancelled:
        return cancel.cancel(connection, row["id"], row["placed_by"])

    return each(room, "stopped", load, partial(_cancel, room, "turn.stopped", end))[Did.DONE]


def cancel_of_disabled(room: Room) -> int:
    """Cancel a batch of what disabled people have queued, which no claim takes. Returns how many were."""

    def load(connection: Connection, limit: int) -> list[DictRow]:
        return every(connection, stops.OF_DISABLED, {"person": None, "limit": limit})

    def end(connection: Connection, row: DictRow) -> Cancelled:
        return people.cancel_of_disabled(connection, row["id"], None)

    return each(room, "of_disabled", load, partial(_cancel, room, "turn.of_disabled", end))[Did.DONE]


def _cancel(
    room: Room, event: str, end: Callable[[Connection, DictRow], Cancelled], connection: Connection, row: DictRow
) -> Result:
    try:
        found = end(connection, row)
    except cancel.TurnOver:
        return GONE

    def then() -> None:
        room.count(event, turn=str(row["id"]), to=found.status)
        room.tell_child(row["id"])
        if found.woken is not None and found.woken.turn_class is not None:
            room.doorbell.ring(found.woken.turn_class)

    return Result(Did.DONE, then)

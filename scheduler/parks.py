"""Turns that nobody holds and that should not stand as they do: asleep for a reason that is gone, or below a turn that
is over. Neither happens while every part works; both are what a lost transaction would leave.

The invariant: what was found is looked at again under the turn's lock, in a later statement.
"""

from __future__ import annotations

from functools import partial

from psycopg.rows import DictRow

from scheduler.room import Room
from scheduler.rows import GONE, Did, Result, each
from shared.store import cancel
from shared.store.intake import fetch
from shared.store.pool import Connection
from shared.store.statements import every, one, trees, turn_end, waiting
from shared.values import EventKind, TurnClass, TurnStatus


def rederive(room: Room) -> int:
    """Wake each turn that has slept for longer than five seconds without a reason. Whoever ended the reason should have
    woken it, so each one counts as `wake_missed`, which must stay zero."""

    def act(connection: Connection, row: DictRow) -> Result:
        one(connection, turn_end.LOCK_TURN, {"turn": row["id"]})
        woken = one(connection, waiting.WAKE_MISSED, {"turn": row["id"], "reason": row["parked_on"]})
        if woken is None:
            return GONE

        def then() -> None:
            room.count("wake_missed", turn=str(row["id"]), why=row["parked_on"])
            room.doorbell.ring(TurnClass(woken["class"]))

        return Result(Did.DONE, then)

    def load(connection: Connection, limit: int) -> list[DictRow]:
        return every(connection, waiting.SLEEPS_FOR_NOTHING, {"limit": limit})

    return each(room, "rederive", load, act)[Did.DONE]


def end_left(room: Room) -> int:
    """Cancel what waits or sleeps below a turn that is over or told to end: nobody will read it."""

    def load(connection: Connection, limit: int) -> list[DictRow]:
        return every(connection, trees.LEFT_CHILDREN, {"limit": limit})

    return each(room, "left_children", load, partial(_end, room))[Did.DONE]


def _end(room: Room, connection: Connection, row: DictRow) -> Result:
    try:
        found = cancel.cancel(connection, row["id"], None)
    except cancel.TurnOver:
        return GONE
    stands = fetch(
        connection,
        "select t.step, s.fence from turns t join sessions s on s.id = t.session where t.id = %s",
        (row["id"],),
    )
    assert stands is not None

    def then() -> None:
        if found.woken is not None and found.woken.turn_class is not None:
            room.doorbell.ring(found.woken.turn_class)
        if found.status is not TurnStatus.CANCELLED:
            return  # claimed meanwhile: its holder ends it, and tells
        room.count("turn.left_cancelled", turn=str(row["id"]), depth=row["depth"])
        data: dict[str, object] = {"status": TurnStatus.CANCELLED, "answer": None, "error": None}
        room.publish(row["id"], stands["step"], stands["fence"], (EventKind.TURN_FINISHED, data))
        room.tell_child(row["id"])

    return Result(Did.DONE, then)

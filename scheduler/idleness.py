"""Finds large conversations that nobody has spoken in for long and admits a housekeeping turn that summarises them,
where a person has turned that on. Whether it is worth it the worker decides, by the same rules as ever."""

from __future__ import annotations

from functools import partial

from psycopg.rows import DictRow

from scheduler.room import Room
from scheduler.rows import GONE, Did, Result, each
from shared.store.intake import NewTurn, admit
from shared.store.pool import Connection
from shared.store.statements import every, inbox, one, reduction
from shared.values import OnBusy, TurnClass

DEADLINE_S = 600


def compact(room: Room) -> int:
    """Admit a turn in each chat that has been idle for `idle_compaction_s` and was billed for at least
    `idle_compaction_tokens`; how many. Once for each time that a conversation falls silent, whatever came of it.

    Two schedulers admit one: the look is repeated under the session's gate.
    """
    idle_s = room.settings.idle_compaction_s
    if idle_s is None:
        return 0
    wanted = {"idle_s": idle_s, "tokens": room.settings.idle_compaction_tokens}

    def act(connection: Connection, row: DictRow) -> Result:
        session = {"session": row["session"]}
        one(connection, inbox.SESSION_GATE, session)
        if one(connection, reduction.STILL_SILENT, {**wanted, **session}) is None:
            return GONE
        new = NewTurn(row["session"], row["owner"], TurnClass.CHORE, None, deadline_s=DEADLINE_S, max_steps=1)
        admit(connection, new, on_busy=OnBusy.QUEUE, queue_bound=room.settings.queued_per_session)
        return Result(Did.DONE, partial(_admitted, room, row))

    tally = each(
        room,
        "idle_compaction",
        lambda connection, limit: every(connection, reduction.FALLEN_SILENT, {**wanted, "limit": limit}),
        act,
    )
    return tally[Did.DONE]


def _admitted(room: Room, row: DictRow) -> None:
    room.count("idle_compaction.admitted", session=str(row["session"]))
    room.doorbell.ring(TurnClass.CHORE)

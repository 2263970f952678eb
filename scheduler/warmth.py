"""Keeps what a person wants kept: a housekeeping turn just before the provider forgets a conversation, which reads it.

Whether that is worth its price the worker has written with its last bill (`sessions.most_pings`): here it is only time.
"""

from __future__ import annotations

from functools import partial

from psycopg.rows import DictRow

from scheduler.room import Room
from scheduler.rows import GONE, Did, Result, each
from shared.store.intake import NewTurn, admit
from shared.store.pool import Connection
from shared.store.statements import every, inbox, one, reduction
from shared.values import OnBusy, TurnClass

EARLY_S = 10.0
DEADLINE_S = 60


def keep(room: Room, early_s: float = EARLY_S) -> int:
    """Admit a turn in each session that is to be kept warm and would be forgotten within `early_s` seconds; how many.

    Two schedulers admit one: the look is repeated under the session's gate, and a turn that waits ends the need.
    """
    near = {"early_s": early_s}

    def act(connection: Connection, row: DictRow) -> Result:
        session = {"session": row["session"]}
        one(connection, inbox.SESSION_GATE, session)
        if one(connection, reduction.STILL_TO_WARM, {**near, **session}) is None:
            return GONE
        new = NewTurn(row["session"], row["owner"], TurnClass.CHORE, None, deadline_s=DEADLINE_S, max_steps=1)
        admit(connection, new, on_busy=OnBusy.QUEUE, queue_bound=room.settings.queued_per_session)
        return Result(Did.DONE, partial(_admitted, room, row))

    tally = each(
        room, "keep_warm", lambda connection, limit: every(connection, reduction.TO_WARM, {**near, "limit": limit}), act
    )
    return tally[Did.DONE]


def _admitted(room: Room, row: DictRow) -> None:
    room.count("ping.admitted", session=str(row["session"]))
    room.doorbell.ring(TurnClass.CHORE)

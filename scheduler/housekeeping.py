"""Admits a housekeeping turn, which no person asked for, in each session that a look finds in need of one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from psycopg.rows import DictRow

from scheduler.room import Room
from scheduler.rows import GONE, Did, Result, each
from shared.store.intake import NewTurn, admit
from shared.store.pool import Connection
from shared.store.statements import Statement, every, inbox, one
from shared.values import OnBusy, TurnClass


@dataclass(frozen=True, slots=True)
class Need:
    """`found` lists sessions in need with their owners, as many as `limit`; `still` asks again for one `session`, as
    another scheduler may have been faster. Both get the same other values. `counter` counts what was admitted."""

    chore: str
    found: Statement
    still: Statement
    counter: str
    deadline_s: int


def admit_for(room: Room, need: Need, values: Mapping[str, object]) -> int:
    """How many turns were admitted and rung for. Two schedulers admit one: the look is repeated under the session's
    gate, and a turn that waits ends the need."""

    def act(connection: Connection, row: DictRow) -> Result:
        session = {"session": row["session"]}
        one(connection, inbox.SESSION_GATE, session)
        if one(connection, need.still, {**values, **session}) is None:
            return GONE
        new = NewTurn(row["session"], row["owner"], TurnClass.CHORE, None, deadline_s=need.deadline_s, max_steps=1)
        admit(connection, new, on_busy=OnBusy.QUEUE, queue_bound=room.settings.queued_per_session)
        return Result(Did.DONE, partial(_admitted, room, need, row))

    tally = each(
        room, need.chore, lambda connection, limit: every(connection, need.found, {**values, "limit": limit}), act
    )
    return tally[Did.DONE]


def _admitted(room: Room, need: Need, row: DictRow) -> None:
    room.count(need.counter, session=str(row["session"]))
    room.doorbell.ring(TurnClass.CHORE)

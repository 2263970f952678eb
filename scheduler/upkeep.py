"""Small duties of the sweep: idle inboxes folded, what is kept no longer deleted, what must not exist counted."""

from __future__ import annotations

from functools import partial

from psycopg.rows import DictRow

from scheduler.room import Room
from scheduler.rows import BATCH, GONE, Did, Result, each
from shared.store import children
from shared.store.intake import NewTurn, admit
from shared.store.pool import Connection
from shared.store.statements import Statement, every, inbox, leading, liveness, one, run, schedule
from shared.values import OnBusy, TurnClass

CHORE_DEADLINE_S = 600


def fold_idle(room: Room) -> int:
    """Admit a turn in each idle session whose inbox holds something that no turn will fold: housekeeping, or, for the
    report of a child in the background, one that answers it."""

    def act(connection: Connection, row: DictRow) -> Result:
        session = {"session": row["session"]}
        one(connection, inbox.SESSION_GATE, session)  # before the look: two schedulers admit one turn
        reads = children.reader(connection, row["session"])
        if reads is not None and reads.turn_class is not None:
            return Result(Did.DONE, partial(_reader_admitted, room, row, reads.turn_class))
        if one(connection, schedule.STILL_IDLE, session) is None:
            return GONE
        new = NewTurn(
            row["session"], row["author"], TurnClass.CHORE, None, deadline_s=CHORE_DEADLINE_S, max_steps=1
        )  # fmt: skip
        admit(connection, new, on_busy=OnBusy.QUEUE, queue_bound=room.settings.queued_per_session)
        return Result(Did.DONE, lambda: _admitted(room, row))

    tally = each(
        room, "fold_idle", lambda connection, limit: every(connection, schedule.IDLE_INBOX, {"limit": limit}), act
    )
    return tally[Did.DONE]


def _reader_admitted(room: Room, row: DictRow, turn_class: TurnClass) -> None:
    room.count("reader.admitted", session=str(row["session"]))
    room.doorbell.ring(turn_class)


def _admitted(room: Room, row: DictRow) -> None:
    room.count("housekeeping.admitted", session=str(row["session"]))
    room.doorbell.ring(TurnClass.CHORE)


def forget(room: Room) -> None:
    """Answers kept for idempotency older than 24 hours, rows of processes that ended a day ago, prefixes that have long
    been cold; a batch of each."""
    batches: tuple[tuple[str, Statement], ...] = (
        ("idempotency.forgotten", schedule.FORGET_ANSWERS),
        ("workers.forgotten", liveness.FORGET_WORKERS),
        ("shared_prefixes.forgotten", leading.FORGET_SHARED),
        ("counters.added_up", schedule.ADD_UP_COUNTERS),
    )
    for event, statement in batches:
        gone = room.database.read(
            lambda connection, statement=statement: run(connection, statement, {"limit": BATCH}).rowcount
        )
        if gone:
            room.count(event, gone)


def report(room: Room) -> None:
    """Count what must not exist; who reads the log decides. Nothing is changed here."""
    reports: tuple[tuple[str, Statement], ...] = (
        (
            "turns.overdue",
            schedule.OVERDUE,
        ),  # its living holder ends a turn past its deadline; this says that it did not
        ("money.left_reserved", schedule.LEFT_RESERVED),
    )
    for event, statement in reports:
        row = room.database.read(lambda connection, statement=statement: one(connection, statement, {}))
        if row and row["n"]:
            room.count(event, row["n"])

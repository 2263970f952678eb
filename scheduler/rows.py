"""One batch of a chore: each row in its own transaction, so that a bad row, or a locked one, costs only itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import psycopg
import structlog
from psycopg.rows import DictRow

from scheduler.room import Room
from shared.errors import LeaseLost, Refused
from shared.store.pool import Connection

BATCH = 200
log = structlog.get_logger("scheduler")


class Did(StrEnum):
    DONE = "done"
    GONE = "gone"  # somebody else did it, or it is no longer so
    LOCKED = "locked"  # skipped, because somebody holds the row: reported, and met again in the next pass


@dataclass(frozen=True, slots=True)
class Result:
    """`then` runs after the commit: rings and logs."""

    did: Did
    then: Callable[[], None] | None = None


GONE = Result(Did.GONE)
LOCKED = Result(Did.LOCKED)


def each(
    room: Room,
    what: str,
    load: Callable[[Connection, int], list[DictRow]],
    act: Callable[[Connection, DictRow], Result],
) -> Counter[str]:
    """Act on each row that `load(connection, limit)` finds. Raises StoreUnavailable; other faults stay with their row.

    `act` runs inside a transaction and must be safe to repeat: it reads again, under its lock, what `load` saw.
    Rows that failed in the last pass stand in front again, so the limit grows by their number: else a batch of bad rows
    would strand every good one behind them.
    """
    rows = room.database.read(lambda connection: load(connection, BATCH + room.failing[what]))
    tally: Counter[str] = Counter()
    for row in rows:
        if room.stop.is_set():
            break
        try:
            result = room.database.read(lambda connection, row=row: _in_transaction(connection, row, act))
        except (psycopg.Error, LeaseLost, Refused) as error:
            tally["failed"] += 1
            log.warning("row.failed", what=what, row=_ids(row), error=type(error).__name__, detail=str(error)[:500])
            continue
        tally[result.did] += 1
        if result.then is not None:
            result.then()
    room.failing[what] = tally["failed"]
    for outcome in (Did.LOCKED, "failed"):
        if tally[outcome]:
            room.count(f"{what}.{outcome}", tally[outcome])
    return tally


def _in_transaction(connection: Connection, row: DictRow, act: Callable[[Connection, DictRow], Result]) -> Result:
    with connection.transaction():
        return act(connection, row)


def _ids(row: DictRow) -> dict[str, str]:
    return {key: str(row[key]) for key in ("id", "session", "tick", "job") if key in row}

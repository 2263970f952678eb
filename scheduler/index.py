"""Keeps the search index behind the transcript, outside the step: bounded text, bounded batches.

The invariant: a message is indexed or has a placeholder, and is never tried unchanged again.

Ids come from a sequence and commit out of order across sessions, so "id above the last one seen" would miss a message
for good. What is unindexed is found by an anti-join instead, above a mark that only moves past ids nobody can still
commit: the newest id of an earlier pass, once every transaction that ran then has ended, and not before the longest
statement (10 s) is over, for one that had taken its id and not yet its transaction number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg
import structlog
from psycopg.rows import DictRow

from scheduler.room import Room
from shared import words
from shared.boottime import boottime
from shared.readable import TEXT_BYTES, indexed
from shared.store.pool import Connection
from shared.store.statements import every, one, run, schedule

BATCH = 200
PASSES = 20
SETTLED_S = 15.0
log = structlog.get_logger("scheduler")


@dataclass(frozen=True, slots=True)
class Sample:
    """The newest id handed out at `at`, and the first transaction number that did not exist then."""

    newest: int
    next_transaction: int
    at: float


class Indexer:
    """Remembers one earlier pass. Not shared between threads."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._sample: Sample | None = None

    def run(self) -> int:
        """Index what stands unindexed, in bounded batches. Returns how many messages were indexed."""
        done = 0
        for _ in range(PASSES):
            rows = self._room.database.read(_waiting)
            self._index(rows)
            done += len(rows)
            if len(rows) < BATCH or self._room.stop.is_set():
                break
        self._room.counters["indexed"] += done
        self._room.database.read(self._move_mark)
        return done

    def _index(self, rows: list[DictRow]) -> None:
        """One transaction for the batch; where it is refused, one for each, and a placeholder for the one at fault."""
        prepared = [_prepared(row) for row in rows]
        try:
            self._room.database.read(lambda connection: _insert(connection, prepared))
        except psycopg.Error:
            for row in prepared:
                self._index_one(row)

    def _index_one(self, row: dict[str, Any]) -> None:
        try:
            self._room.database.read(lambda connection: _insert(connection, [row]))
        except psycopg.Error as error:
            self._room.count(
                "index.refused", message=row["id"], session=str(row["session"]), error=type(error).__name__
            )
            self._room.database.read(lambda connection: _insert(connection, [{**row, "folded": "", "words": ""}]))

    def _move_mark(self, connection: Connection) -> None:
        now = one(connection, schedule.HORIZON, {})
        assert now is not None
        before = self._sample
        if before is None:
            self._sample = Sample(now["newest"], now["next_transaction"], boottime())
        elif boottime() - before.at >= SETTLED_S and now["oldest_running"] >= before.next_transaction:
            run(connection, schedule.MARK_INDEXED, {"below": before.newest + 1})
            self._sample = Sample(now["newest"], now["next_transaction"], boottime())


def _insert(connection: Connection, rows: list[dict[str, Any]]) -> None:
    with connection.transaction():
        for row in rows:
            run(connection, schedule.INDEX_MESSAGE, row)


def _waiting(connection: Connection) -> list[DictRow]:
    """What stands unindexed; where all is, what an older cut made, newest first."""
    values = {"limit": BATCH, "chars": TEXT_BYTES * 4, "version": words.VERSION}
    return every(connection, schedule.UNINDEXED, values) or every(connection, schedule.INDEXED_OLD, values)


def _prepared(row: DictRow) -> dict[str, Any]:
    found = indexed(row["content"], row["author"], row["role"])
    head = {"id": row["id"], "session": row["session"], "version": words.VERSION}
    return {**head, "folded": found.folded, "words": found.words}

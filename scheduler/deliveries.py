"""Ends ticks whose turn has ended, and brings their answers to where the job wants them.

The invariant: a delivery is `done` only with evidence, and one that fails is tried again by itself: the turn, which has
cost its money and done its work, is never run again for it.
"""

from __future__ import annotations

from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import structlog
from psycopg.rows import DictRow

from scheduler import brief, brief_file
from scheduler.room import Room
from scheduler.rows import GONE, Did, Result, each
from shared.errors import Refused
from shared.ids import uuid7
from shared.request import blocks
from shared.store.intake import deliver, fetch
from shared.store.pool import Connection
from shared.store.statements import every, one, run, schedule
from shared.values import TurnClass

MOST_TRIES = 16
"""With the pauses of `delivery_take` (2 s, doubling up to an hour) about seven hours."""
log = structlog.get_logger("scheduler")


def run_due(room: Room) -> int:
    """End finished runs, then try each delivery that is due. Returns how many were delivered."""
    each(
        room,
        "run_end",
        lambda connection, limit: every(connection, schedule.ENDED_RUNS, {"limit": limit}),
        partial(_end_run, room),
    )
    tally = each(
        room,
        "deliver",
        lambda connection, limit: every(connection, schedule.DUE_DELIVERIES, {"limit": limit}),
        lambda connection, row: _take(room, connection, row),
    )
    return tally[Did.DONE]


def _end_run(room: Room, connection: Connection, row: DictRow) -> Result:
    """The tick takes its turn's end over, and with it where to deliver. A cancelled run delivers nothing."""
    ended = one(connection, schedule.ENDED_RUN, {"tick": row["id"]})
    if ended is None:
        return GONE
    if ended["status"] != "cancelled":
        folder = Path(ended["deliver_file"] or room.settings.home.absolute() / "briefs")
        path = folder / brief.file_name(ended["name"], ended["tick"], ended["instant"])
        _add(connection, ended, "file", str(path))
        if ended["deliver_session"] is not None:
            _add(connection, ended, "session", str(ended["deliver_session"]))
    params = {
        "tick": ended["tick"], "status": ended["status"], "error_code": ended["error_code"],
        "error_text": ended["error_text"],
    }  # fmt: skip
    run(connection, schedule.TICK_ENDED, params)
    return Result(Did.DONE, lambda: room.count("run.ended", tick=str(ended["tick"]), status=ended["status"]))


def _add(connection: Connection, ended: DictRow, kind: str, target: str) -> None:
    params = {"delivery": uuid7(), "tick": ended["tick"], "turn": ended["turn"], "kind": kind, "target": target}
    run(connection, schedule.DELIVERY_ADD, params)


def _take(room: Room, connection: Connection, row: DictRow) -> Result:
    """Count the try and commit it; the delivery itself follows after, outside that transaction."""
    taken = one(connection, schedule.DELIVERY_TAKE, {"id": row["id"]})
    if taken is None:
        return GONE
    return Result(Did.DONE, lambda: _deliver(room, taken["id"]))


def _deliver(room: Room, delivery: UUID) -> None:
    found = room.database.read(lambda connection: one(connection, schedule.DELIVERY_TEXT, {"id": delivery}))
    if found is None:
        return
    try:
        if found["kind"] == "file":
            evidence = brief_file.write(Path(found["target"]), brief.markdown(_outcome(room, found)))
            room.database.read(lambda connection: _done(connection, delivery, evidence))
        else:
            housekeeping = room.database.read(lambda connection: _into_session(room, connection, found))
            if housekeeping is not None:
                room.doorbell.ring(TurnClass.CHORE)
    except Exception as error:  # noqa: BLE001 - whatever it was becomes the row's error, and the row is tried again
        log.warning("delivery.failed", delivery=str(delivery), kind=found["kind"], error=type(error).__name__)
        _failed(room, delivery, f"{type(error).__name__}: {error}")
        return
    room.count("delivery.done", delivery=str(delivery), kind=found["kind"], tick=str(found["tick"]))


def _into_session(room: Room, connection: Connection, found: DictRow) -> UUID | None:
    """The inbox row and its evidence in one transaction; its key makes a second try find the first."""
    session, key = UUID(found["target"]), f"delivery:{found['id']}"
    payload = blocks.join([blocks.text(brief.message(_outcome(room, found)))])
    with connection.transaction():
        if fetch(connection, "select 1 from sessions where id = %s", (session,)) is None:
            raise Refused(f"there is no session {session}", code="not_found", status=404)
        housekeeping = deliver(connection, session, found["principal"], payload, key)
        row = fetch(connection, "select id from inbox where dedupe_key = %s", (key,))
        if row is None:
            raise RuntimeError("an inbox row that was just written is not there")
        _done(connection, found["id"], f"inbox:{row['id']}")
        return housekeeping


def _done(connection: Connection, delivery: UUID, evidence: str) -> None:
    run(connection, schedule.DELIVERY_DONE, {"id": delivery, "evidence": evidence})


def _failed(room: Room, delivery: UUID, text: str) -> None:
    params = {"id": delivery, "error_text": text[:1000], "most": MOST_TRIES}
    row = room.database.read(lambda connection: one(connection, schedule.DELIVERY_FAILED, params))
    room.count("delivery.failed", delivery=str(delivery), **({"status": row["status"]} if row else {}))


def _outcome(room: Room, found: DictRow) -> brief.Outcome:
    fields: dict[str, Any] = {
        key: found[key]
        for key in (
            "job", "name", "turn", "session", "instant", "zone", "manual", "status", "answer", "error_code",
            "error_text", "steps", "model", "unknown_effects",
        )
    }  # fmt: skip
    waited = tuple(_waited(one) for one in found["waited"])
    cost = None if found["cost_unknown"] else found["spent_usd"]
    return brief.Outcome(**fields, run=found["tick"], cost_usd=cost, rehearsal=room.settings.rehearsal, waited=waited)


def _waited(row: dict[str, Any]) -> brief.Waited:
    asked, decided = row["asked_at"], row["decided_at"]
    return brief.Waited(
        row["tool"], row["why"], row["status"], datetime.fromisoformat(asked),
        None if decided is None else datetime.fromisoformat(decided), row["decided_by"],
    )  # fmt: skip

"""The rhythm of looking: a look each half second, on a connection of its own, bounded: a hung server is a gap."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import psycopg
import structlog
from psycopg.rows import DictRow

from scheduler.liveness import GAP_S, LOOKS_APART_S, Dead, Seen, Suspect, Watch, Why
from scheduler.room import Room
from shared.boottime import boottime
from shared.store.deadline import within
from shared.store.pool import Connection
from shared.store.statements import every, liveness

EACH_S = 0.5
log = structlog.get_logger("scheduler")


@dataclass(slots=True)
class Found:
    """The dead of the newest look, handed to the thread that takes their turns."""

    dead: tuple[tuple[Seen, Why], ...] = ()
    changed: threading.Event = field(default_factory=threading.Event)


def look_on(room: Room, found: Found) -> None:
    """Look until the room stops. Takeovers run elsewhere: one that waits for a lock must not make a gap here."""
    watch = Watch(room.settings.lease_s, boottime())
    while not room.stop.is_set():
        try:
            with psycopg.connect(
                room.settings.database_url,
                autocommit=True,
                prepare_threshold=None,
                connect_timeout=3,
                application_name="nightshift-looks",
            ) as connection:
                while not room.stop.is_set():
                    room.stop.wait(look(room, connection, watch, found))
        except (psycopg.Error, OSError, RuntimeError) as error:
            watch.broken(boottime())
            found.dead = ()
            room.count("looks.broken", error=type(error).__name__)
            room.stop.wait(0.2)


def look(room: Room, connection: Connection, watch: Watch, found: Found) -> float:
    """One look. Returns the seconds until the next: sooner where one more look may settle a doubt."""
    begun = boottime()
    with within(connection, GAP_S):
        rows = every(connection, liveness.LOOK, {})
    judged = watch.saw([_seen(row) for row in rows if row["boot_id"]], rows[0]["server_started"], boottime())
    found.dead = tuple((row, v.why) for row, v in judged if isinstance(v, Dead))
    if found.dead:
        found.changed.set()
    doubts = any(isinstance(v, Suspect) and not row.locked for row, v in judged)
    pause = LOOKS_APART_S / 2 if doubts else EACH_S
    room.counters["looks"] += 1
    return max(0.05, pause - (boottime() - begun))


def _seen(row: DictRow) -> Seen:
    return Seen(
        boot_id=row["boot_id"],
        beat_at=row["beat_at"],
        silent_s=row["silent_s"],
        lease_over=row["lease_over"],
        locked=row["locked"],
        kind=row["kind"],
        pid=row["pid"],
    )

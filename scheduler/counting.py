"""What this process has counted, written where the metrics are served from. Counts only rise, and a process writes its
own whole values, so that a lost reply or a second scheduler counts nothing twice."""

from __future__ import annotations

from scheduler.room import Room
from shared.store.arrays import array
from shared.store.statements import run, schedule


def write(room: Room) -> int:
    """Write what has changed since the last pass that got through. Returns how many counters that were."""
    now = dict(room.counters)
    changed = {name: value for name, value in now.items() if room.written[name] != value}
    if changed:
        values = {"boot": room.boot, "names": array(changed), "values": array(changed.values())}
        room.database.read(lambda connection: run(connection, schedule.WRITE_COUNTERS, values).rowcount)
        room.written.update(changed)
    return len(changed)

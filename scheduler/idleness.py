"""Finds large conversations that nobody has spoken in for long and admits a housekeeping turn that summarises them,
where a person has turned that on. Whether it is worth it the worker decides, by the same rules as ever."""

from __future__ import annotations

from scheduler.housekeeping import Need, admit_for
from scheduler.room import Room
from shared.store.statements import reduction

SILENT = Need(
    "idle_compaction", reduction.FALLEN_SILENT, reduction.STILL_SILENT, "idle_compaction.admitted", deadline_s=600
)


def compact(room: Room) -> int:
    """Admit a turn in each chat that has been idle for `idle_compaction_s` and was billed for at least
    `idle_compaction_tokens`; how many. Once for each time that a conversation falls silent, whatever came of it."""
    idle_s = room.settings.idle_compaction_s
    if idle_s is None:
        return 0
    return admit_for(room, SILENT, {"idle_s": idle_s, "tokens": room.settings.idle_compaction_tokens})

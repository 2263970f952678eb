"""Rings again for what waits: a lost ring, a restarted broker or an expired message costs a second, never a turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import redis

from scheduler.room import Room
from shared.doorbell import queue_of
from shared.store.statements import admission, every, liveness, one
from shared.values import TurnClass

MOST = 64


def plan(
    waiting: Mapping[TurnClass, int], free: int, unheard: Mapping[TurnClass, int], *, truncated: bool
) -> list[TurnClass]:
    """Which classes to ring, in their order of rank: as often as slots are free and sessions wait, each at least once.
    `unheard` are rings that nobody has taken yet: in a crowd a slot looks free though its thread stands in line for a
    claim, and thousands of rings would lie there, each a look in vain.

    `truncated`: not every queue was seen to its end, so each class is rung once at least; a vain ring costs one look.
    """
    left = min(max(free, 0), MOST)
    rings: list[TurnClass] = []
    for turn_class in TurnClass:
        sessions = waiting.get(turn_class, 0)
        if not sessions and not truncated:
            continue
        times = max(1, min(sessions, left))
        rings += [turn_class] * max(1, times - unheard.get(turn_class, 0))
        left -= times if sessions else 0
    return rings[:MOST]


def ring_waiting(room: Room) -> int:
    """Ring each class that has a turn which a claim would find. Returns how many rings the broker took."""
    limits = admission.limits(room.settings)
    rows = room.database.read(lambda connection: every(connection, admission.WAITING_CLASSES, limits))
    waiting = {TurnClass(row["class"]): row["sessions"] for row in rows if row["class"] is not None}
    truncated = any(row["truncated"] for row in rows)
    if not waiting and not truncated:
        return 0
    free = room.database.read(lambda connection: one(connection, liveness.FREE_SLOTS, {})) or {"free": 0}
    rung = 0
    unheard = _unheard(room, list(waiting))
    for turn_class in plan(waiting, free["free"], unheard, truncated=truncated):
        if not room.doorbell.ring(turn_class):
            break
        rung += 1
    room.counters["rings"] += rung
    return rung


def _unheard(room: Room, classes: Sequence[TurnClass]) -> dict[TurnClass, int]:
    """How many rings lie in the queue of each class. None where the broker does not say: it may have been flushed."""
    client: Any = room.redis  # untyped in redis-py
    try:
        with client.pipeline(transaction=False) as asked:
            for turn_class in classes:
                asked.llen(queue_of(turn_class))
            return dict(zip(classes, asked.execute(), strict=True))
    except redis.RedisError:
        return {}

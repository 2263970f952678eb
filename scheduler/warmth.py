"""Keeps what a person wants kept: a housekeeping turn just before the provider forgets a conversation, which reads it.

Whether that is worth its price the worker has written with its last bill (`sessions.most_pings`): here it is only time.
"""

from __future__ import annotations

from scheduler.housekeeping import Need, admit_for
from scheduler.room import Room
from shared.store.statements import reduction

EARLY_S = 10.0
COOLING = Need("keep_warm", reduction.TO_WARM, reduction.STILL_TO_WARM, "ping.admitted", deadline_s=60)


def keep(room: Room, early_s: float = EARLY_S) -> int:
    """Admit a turn in each session that is to be kept warm and would be forgotten within `early_s` s; how many."""
    return admit_for(room, COOLING, {"early_s": early_s})

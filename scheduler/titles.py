"""Finds chats whose first turn has ended and whose title is their first line, and admits a housekeeping turn that asks
for a better one: apart from the turn, so that no answer waits for it."""

from __future__ import annotations

from scheduler.housekeeping import Need, admit_for
from scheduler.room import Room
from shared.providers import chains
from shared.store.statements import titles

UNTITLED = Need("titles", titles.UNTITLED, titles.STILL_UNTITLED, "title.admitted", deadline_s=60)


def name(room: Room) -> int:
    """Admit a turn in each such session, once in its life; how many. Where no setting says so, titles are asked for if
    the auxiliary chain names a model: that of the conversation may be a dear one."""
    wanted = room.settings.titles
    if wanted is None:
        wanted = any(link is not None for link in chains.auxiliary(room.settings.auxiliary))
    return admit_for(room, UNTITLED, {}) if wanted else 0

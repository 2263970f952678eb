"""What is remembered, as a person sees it: the team's, and their own. Anybody else's does not exist, for admins too."""

from __future__ import annotations

import json
from uuid import UUID

from psycopg.rows import DictRow

from api.problems import not_found
from api.wire.memory import Memory, Revision, Suspect
from shared import memory, suspicion
from shared.memory import TEAM, Action, Kind, Scope
from shared.settings import Settings
from shared.store import memories
from shared.store.memories import Told
from shared.store.pool import Connection

NEWEST = 2**31 - 1


def scope_of(called: str, who: UUID) -> Scope:
    """The scope that a path names: `team`, `me` (one's own id says the same), `profile`. Raises Refused
    `not_found`."""
    match called:
        case "team":
            return TEAM
        case "profile":
            return Scope(Kind.PROFILE, who)
        case _ if called in ("me", str(who)):
            return Scope(Kind.PERSON, who)
        case _:
            raise not_found()


def find(connection: Connection, scope: Scope, settings: Settings) -> Memory:
    return shown(memories.read(connection, scope), settings)


def shown(told: Told, settings: Settings) -> Memory:
    entries = told.head.entries
    suspects = [
        Suspect(entry=number, why=why)
        for number, entry in enumerate(entries, 1)
        if (why := suspicion.why(entry)) is not None
    ]
    return Memory(
        scope=told.head.scope.called,
        revision=told.head.revision,
        entries=list(entries),
        left_out=suspects,
        characters=memory.size(entries),
        limit=memory.limit(settings, told.head.scope.kind),
        updated_at=told.updated_at,
        updated_by=told.updated_by,
    )


def history(connection: Connection, scope: Scope, who: UUID, before: int, limit: int) -> list[Revision]:
    """Newest first."""
    return [_revision(row) for row in memories.history(connection, scope, who, before, limit)]


def _revision(row: DictRow) -> Revision:
    whole = row["action"] == Action.SET
    return Revision(
        revision=row["revision"],
        action=row["action"],
        taken=json.loads(row["taken"]) if whole and row["taken"] else row["taken"],
        put=json.loads(row["put"]) if whole and row["put"] else row["put"],
        entries=list(memory.load(row["entries"])),
        author=row["author"],
        by_agent=row["by_agent"],
        turn_id=row["turn"],
        created_at=row["created_at"],
    )

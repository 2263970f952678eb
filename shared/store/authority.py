"""On whose behalf a turn runs, from its row."""

from __future__ import annotations

from uuid import UUID

from shared.secrets import TEAM, Authority
from shared.store.pool import Connection
from shared.store.statements import one
from shared.store.statements.authority import AUTHORITY


def of_turn(connection: Connection, turn: UUID) -> Authority:
    """A job's turn has its job's keys and never a person's; of a turn that is not there, the team's alone."""
    row = one(connection, AUTHORITY, {"turn": turn})
    if row is None:
        return TEAM
    return Authority(person=None if row["job"] is not None else row["person"], job=row["job"])

"""Children of a session's turns as they are shown: who works for it, how that stands, what it costs."""

from __future__ import annotations

from typing import LiteralString
from uuid import UUID

from psycopg.rows import DictRow, dict_row

from api.answers import bill
from api.visible import only
from api.wire.shown import Child
from shared.store.pool import Connection

# A child is seen by whom its own session is shown to, which is whom its parent's is.
OF_SESSION: LiteralString = only(
    """
select c.id, c.seq, c.session, c.parent, c.parent_step, c.parent_ordinal, c.child_index, c.background, c.status,
  c.steps - c.refunds as steps, c.spent_usd + c.children_usd as usd, c.cost_unknown or c.children_unknown as unknown,
  (select count(*) from tool_runs r
    where r.session = c.session and r.turn = c.id and r.status = 'unknown') as unknown_effects,
  c.created_at, c.finished_at, s.title
from turns p join turns c on c.parent = p.id join sessions s on s.id = c.session
where p.session = %(session)s and c.seq > %(after)s
""",
    " order by c.seq limit %(limit)s",
)


def of_session(connection: Connection, session: UUID, who: UUID, after: int, limit: int) -> list[DictRow]:
    """In the order in which they were made; rows have `seq`."""
    values = {"session": session, "who": who, "after": after, "limit": limit}
    return connection.cursor(row_factory=dict_row).execute(OF_SESSION, values).fetchall()


def shown(row: DictRow) -> Child:
    return Child(
        turn_id=row["id"],
        session_id=row["session"],
        parent_id=row["parent"],
        step=row["parent_step"],
        ordinal=row["parent_ordinal"],
        number=row["child_index"] + 1,
        title=row["title"],
        status=row["status"],
        background=row["background"],
        steps_used=row["steps"],
        cost_usd=bill(row["usd"], row["unknown"]),
        unknown_effects=row["unknown_effects"],
        created_at=row["created_at"],
        finished_at=row["finished_at"],
    )

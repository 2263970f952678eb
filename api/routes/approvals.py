"""The team's inbox of decisions on tool calls."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter
from psycopg.rows import dict_row
from starlette.responses import Response

from api import answers, pages
from api.injected import Reading, Serving
from api.openapi import gives
from api.visible import only
from api.wire.shown import Approval, ApprovalPage
from shared.store.pool import Connection

router = APIRouter(tags=["approvals"])
LIST = only(
    """
select a.id, a.turn, a.session, a.step, a.tool, r.arguments, a.status, a.created_at, a.expires_at, a.decided_at,
  d.name as decided_by, a.note
from approvals a join sessions s on s.id = a.session
left join tool_runs r on r.turn = a.turn and r.step = a.step and r.ordinal = a.ordinal
left join principals d on d.id = a.decided_by
where (%(status)s::text is null or a.status = %(status)s)
""",
    " order by a.created_at desc, a.id limit %(limit)s offset %(skip)s",
)
Status = Literal["pending", "approved", "denied", "expired", "void"]


@router.get("/v1/approvals", responses=gives(ApprovalPage))
def list_approvals(
    serving: Serving,
    caller: Reading,
    status: Status | None = None,
    limit: pages.Limit = pages.DEFAULT,
    cursor: pages.Cursor = None,
) -> Response:
    """What was asked of people in the sessions that the caller may see, newest first."""
    skip = pages.decode(cursor, 0)
    values = {"who": caller.principal.id, "status": status, "limit": limit + 1, "skip": skip}

    def read(connection: Connection) -> Response:
        rows = connection.cursor(row_factory=dict_row).execute(LIST, values).fetchall()
        items = [
            Approval(
                turn_id=row["turn"], session_id=row["session"],
                **{key: value for key, value in row.items() if key not in {"turn", "session"}},
            )
            for row in rows[:limit]
        ]  # fmt: skip
        return answers.ok(ApprovalPage(items=items, next=pages.encode(skip + limit) if len(rows) > limit else None))

    return serving.database.read(read)

"""Children: who works for the turns of a session."""

from __future__ import annotations

from fastapi import APIRouter
from psycopg.rows import DictRow
from starlette.responses import Response

from api import answers, pages
from api.injected import Reading, Serving, identifier
from api.openapi import gives
from api.reads import children, sessions
from api.wire.shown import ChildPage
from shared.store.pool import Connection

router = APIRouter(tags=["sessions"])


@router.get("/v1/sessions/{session}/children", responses=gives(ChildPage))
def list_children(
    serving: Serving, caller: Reading, session: str, limit: pages.Limit = pages.DEFAULT, cursor: pages.Cursor = None
) -> Response:
    """Children that the session's turns have delegated to, in the order in which they were made."""
    id_, who = identifier(session), caller.principal.id
    after = pages.decode(cursor, 0)

    def read(connection: Connection) -> list[DictRow]:
        sessions.must_see(connection, id_, who)
        return children.of_session(connection, id_, who, after, limit + 1)

    rows = serving.database.read(read)
    following = pages.encode(rows[limit - 1]["seq"]) if len(rows) > limit else None
    return answers.ok(ChildPage(items=[children.shown(row) for row in rows[:limit]], next=following))

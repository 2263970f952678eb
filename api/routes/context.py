"""What the model sees of a session, and each decision about its past with the arithmetic behind it."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from api import answers, pages
from api.injected import Reading, Serving, identifier
from api.openapi import gives
from api.reads import context, sessions
from api.wire.context import Context, ReductionPage
from shared.store.pool import Connection

router = APIRouter(tags=["transcripts"])
NEWEST = 2**62


@router.get("/v1/sessions/{session}/context", responses=gives(Context))
def get_context(serving: Serving, caller: Reading, session: str) -> Response:
    """The floor, what stands, summaries, stubs and rewinds in tokens, and what to do where something is wrong."""
    id_ = identifier(session)

    def read(connection: Connection) -> Context:
        with connection.transaction():  # as of one moment
            connection.execute("set transaction isolation level repeatable read, read only")
            sessions.must_see(connection, id_, caller.principal.id)
            return context.find(connection, id_, serving.settings)

    return answers.ok(serving.database.read(read))


@router.get("/v1/sessions/{session}/reductions", responses=gives(ReductionPage))
def list_reductions(
    serving: Serving, caller: Reading, session: str, limit: pages.Limit = pages.DEFAULT, cursor: pages.Cursor = None
) -> Response:
    """Decisions other than to leave the past as it is, newest first, each with what it was decided by."""
    id_, before = identifier(session), pages.decode(cursor, NEWEST)

    def read(connection: Connection) -> Response:
        sessions.must_see(connection, id_, caller.principal.id)
        rows = context.reductions(connection, id_, before, limit + 1)
        following = pages.encode(rows[limit - 1]["id"]) if len(rows) > limit else None
        return answers.ok(ReductionPage(items=[context.shown_reduction(row) for row in rows[:limit]], next=following))

    return serving.database.read(read)

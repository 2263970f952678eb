"""What was ever said and the caller may see, found by words."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from api import answers, pages
from api.injected import Reading, Serving, identifier
from api.openapi import gives
from api.problems import invalid
from api.reads import sessions
from api.wire import found as wire
from api.wire.found import Beside, HitPage
from shared import words
from shared.store import search
from shared.store.pool import Connection
from shared.store.search import Hit, Said, Scope

router = APIRouter(tags=["search"])
MOST = 50
Limit = Annotated[int, Query(ge=1, le=MOST)]


@router.get("/v1/search", responses=gives(HitPage))
def search_messages(
    serving: Serving,
    caller: Reading,
    q: Annotated[str, Query(description="Words; all of them count. Double quotes keep words together.")],
    session: Annotated[str | None, Query(max_length=40, description="Only in this one, each message a hit")] = None,
    limit: Limit = 10,
    cursor: pages.Cursor = None,
) -> Response:
    """Messages by their words, in any script, whole or inside longer ones: one hit a session, best first, with the
    messages around it. What a summary stands for is found, what was taken back is not."""
    if len(q) > words.MOST_CHARACTERS:
        raise invalid("q", f"at most {words.MOST_CHARACTERS:,} characters are searched for", code="query_too_long")
    asked = words.ask(q)
    if asked is None:
        raise invalid("q", "there is no word in it: ask for letters or digits that were written", code="query_empty")
    offset, within, who = pages.decode(cursor, 0), None if session is None else identifier(session), caller.principal.id

    def read(connection: Connection) -> Response:
        if within is not None:
            sessions.must_see(connection, within, who)
        found = search.search(connection, asked, Scope((who,)), limit=limit, offset=offset, within=within)
        following = pages.encode(offset + limit) if found.following else None
        return answers.ok(HitPage(items=[_hit(one) for one in found.hits], next=following, complete=not found.cut))

    return serving.database.read(read)


def _hit(hit: Hit) -> wire.Hit:
    return wire.Hit(
        session_id=hit.session, title=hit.title, kind=hit.kind, message_id=str(hit.message), turn_id=hit.turn,
        author=hit.author, role=hit.role, state="summarised" if hit.covered else "live", created_at=hit.created_at,
        snippet=hit.snippet, handle=hit.handle, more=hit.more, before=_beside(hit.before), after=_beside(hit.after),
    )  # fmt: skip


def _beside(said: Said | None) -> Beside | None:
    if said is None:
        return None
    return Beside(message_id=str(said.message), author=said.author, role=said.role, text=said.text)

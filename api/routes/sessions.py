"""Sessions: made, listed, looked at."""

from __future__ import annotations

from uuid import UUID

from fastapi import APIRouter
from psycopg import errors
from starlette.responses import Response

from api import answers, commands, host_paths, pages
from api.auth import Caller
from api.commands import Answer
from api.injected import Reading, Serving, Writing, identifier
from api.openapi import accepts, gives
from api.problems import invalid
from api.reads import sessions, turns
from api.services import Services
from api.wire.asked import SessionAsked
from api.wire.shown import Page, Session, SessionPage
from shared.providers import named, resolve
from shared.store import intake
from shared.store.pool import Connection
from shared.values import Audience

router = APIRouter(tags=["sessions"])
NEWEST = 2**62


@router.post("/v1/sessions", status_code=201, openapi_extra=accepts(SessionAsked), responses=gives(Session, 201))
def create_session(serving: Serving, written: Writing) -> Response:
    """Begin a conversation. It is private unless `audience` says otherwise."""
    asked = written.body(SessionAsked)
    new = _new(serving, written.caller, asked)

    def effect(connection: Connection) -> Answer:
        try:
            session = intake.create_session(connection, new)
        except errors.ForeignKeyViolation as error:
            raise invalid("people", "one of them is not known here", code="people_unknown") from error
        return Answer(201, answers.text(sessions.find(connection, session, written.caller.principal.id)))

    return commands.perform(serving, written, effect).response()


@router.get("/v1/sessions", responses=gives(SessionPage))
def list_sessions(
    serving: Serving, caller: Reading, limit: pages.Limit = pages.DEFAULT, cursor: pages.Cursor = None
) -> Response:
    """Sessions that the caller may see, newest first."""
    before = pages.decode(cursor, NEWEST)
    who = caller.principal.id
    rows = serving.database.read(lambda c: sessions.newest(c, who, before, limit + 1))
    shown = [sessions.shown(row, who) for row in rows[:limit]]
    following = pages.encode(rows[limit - 1]["seq"]) if len(rows) > limit else None
    return answers.ok(SessionPage(items=shown, next=following))


@router.get("/v1/sessions/{session}", responses=gives(Session))
def get_session(serving: Serving, caller: Reading, session: str) -> Response:
    """One session with its money, cache and breaker columns."""
    id_, who = identifier(session), caller.principal.id
    return answers.ok(serving.database.read(lambda c: sessions.find(c, id_, who)))


@router.get("/v1/sessions/{session}/turns", responses=gives(Page))
def list_turns(
    serving: Serving, caller: Reading, session: str, limit: pages.Limit = pages.DEFAULT, cursor: pages.Cursor = None
) -> Response:
    """A session's turns, newest first."""
    id_, who = identifier(session), caller.principal.id
    before = pages.decode(cursor, NEWEST)

    def read(connection: Connection) -> Response:
        sessions.must_see(connection, id_, who)
        rows = turns.of_session(connection, id_, who, before, limit + 1)
        following = pages.encode(rows[limit - 1]["seq"]) if len(rows) > limit else None
        return answers.ok(Page(items=[turns.shown(row) for row in rows[:limit]], next=following))

    return serving.database.read(read)


def _new(serving: Services, caller: Caller, asked: SessionAsked) -> intake.NewSession:
    host_paths.check(caller, serving.settings.home, "folder", asked.folder)
    if asked.people and asked.audience is not Audience.PEOPLE:
        raise invalid("people", "they are named for the audience 'people' only")
    people: tuple[UUID, ...] = tuple(asked.people)
    settings = serving.settings
    provider = resolve.name(settings)
    if asked.model is not None:
        named.check(settings, provider, asked.model)
    return intake.NewSession(
        owner=caller.principal.id,
        provider=provider,
        model=asked.model or settings.model,
        workspace=str(settings.home.absolute() / "workspaces" / "{session}"),
        audience=asked.audience,
        title=asked.title,
        profile=asked.profile,
        folder=asked.folder,
        cap_usd=asked.cap_usd,
        people=people,
        keep_warm=asked.keep_warm,
    )

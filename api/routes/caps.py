"""What may be spent, changed while turns run or wait, by whose money it is and by an admin: caps, and whether a session
is kept warm while nobody is there."""

from __future__ import annotations

from typing import Annotated, LiteralString
from uuid import UUID

from fastapi import APIRouter, Query
from starlette.responses import Response

from api import answers, commands
from api.auth import Caller
from api.commands import Answer
from api.injected import Reading, Serving, Writing, identifier
from api.openapi import accepts, gives
from api.reads import sessions, switch, turns
from api.services import Services
from api.waking import ring_for
from api.wire.asked import CapAsked, SessionChange
from api.wire.fields import ModelName, Name
from api.wire.money import Switch
from api.wire.shown import Session, Turn
from shared.errors import Refused, SettingsError
from shared.providers import named, resolve
from shared.providers.chains import Link
from shared.store import caps
from shared.store.intake import fetch
from shared.store.pool import Connection
from shared.store.statements import run, titles
from shared.values import Role

router = APIRouter(tags=["caps"])
# Whose money it is: the session's owner's, and where that is a job, the person's whose job it is.
OWNS: LiteralString = """
select s.owner = %(who)s or exists (select 1 from jobs j where j.principal = s.owner and j.owner = %(who)s) as owns
from sessions s where s.id = %(session)s
"""
ASKED: LiteralString = "select requested_by = %(who)s as asked from turns where id = %(turn)s"


@router.patch("/v1/turns/{turn}", openapi_extra=accepts(CapAsked), responses=gives(Turn))
def cap_turn(serving: Serving, written: Writing, turn: str) -> Response:
    """Set what a turn may cost, also while it runs. One that waits for money goes on where that makes room; so who
    asked for it, whose session it is, or an admin sets it. A child's is its parent's to give (409 `cap_of_child`)."""
    id_, who = identifier(turn), written.caller.principal.id
    asked = written.body(CapAsked)

    def effect(connection: Connection) -> Answer:
        session: UUID = turns.session_of(connection, id_, who)["session"]
        found = fetch(connection, ASKED, {"who": who, "turn": id_})
        _allow(connection, written.caller, session, asked=found is not None and found["asked"])
        woken = caps.of_turn(connection, id_, who, asked.cap_usd)
        shown = turns.find(connection, id_, who)
        return Answer(200, answers.text(shown), after=lambda: ring_for(serving, woken))

    return commands.perform(serving, written, effect).response()


@router.patch("/v1/sessions/{session}", openapi_extra=accepts(SessionChange), responses=gives(Session))
def change_session(serving: Serving, written: Writing, session: str) -> Response:
    """Name a session. Set what it may cost over all its turns, also while one runs or waits for money; whether it is
    read before the provider forgets it, which costs while nobody is there; and which model answers from its next turn
    on, which reads the conversation anew: `GET …/switch` tells before for about how much, and so does the turn
    (`model.switched`) before its first call. Its owner or an admin."""
    id_, who = identifier(session), written.caller.principal.id
    asked = written.body(SessionChange)

    def effect(connection: Connection) -> Answer:
        sessions.must_see(connection, id_, who)
        _allow(connection, written.caller, id_)
        woken = None
        if asked.title is not None:
            run(connection, titles.TITLE_SET, {"session": id_, "title": asked.title})
        if "cap_usd" in asked.model_fields_set:
            woken = caps.of_session(connection, id_, who, asked.cap_usd)
        if "keep_warm" in asked.model_fields_set:
            caps.keep_warm(connection, id_, who, wanted=asked.keep_warm)
        if asked.model is not None:
            _reachable(serving, asked.provider)
            named.check(serving.settings, asked.provider or sessions.provider(connection, id_), asked.model)
            caps.speak_to(connection, id_, who, asked.provider, asked.model)
        shown = sessions.find(connection, id_, who)
        return Answer(200, answers.text(shown), after=lambda: ring_for(serving, woken))

    return commands.perform(serving, written, effect).response()


@router.get("/v1/sessions/{session}/switch", responses=gives(Switch))
def price_switch(
    serving: Serving,
    caller: Reading,
    session: str,
    model: Annotated[ModelName, Query(description="The model that would answer")],
    provider: Annotated[Name | None, Query(description="Where it is, if it is not where the last one was")] = None,
) -> Response:
    """What it would cost to let another model answer: the next call has to read the conversation anew, beside what that
    call costs if nothing is changed. Nothing is."""
    id_ = identifier(session)

    def read(connection: Connection) -> Switch:
        with connection.transaction():  # as of one moment
            connection.execute("set transaction isolation level repeatable read, read only")
            sessions.must_see(connection, id_, caller.principal.id)
            _reachable(serving, provider)
            at = provider or sessions.provider(connection, id_)
            named.check(serving.settings, at, model)
            return switch.find(connection, id_, serving.settings, Link(at, model))

    return answers.ok(serving.database.read(read))


def _reachable(serving: Services, provider: str | None) -> None:
    """Raises Refused `provider_unknown` (422)."""
    try:
        if provider is not None:
            resolve.of_provider(serving.settings, provider)
    except SettingsError as error:
        raise Refused(
            f"no turn could speak to {provider}: {error.message}", code="provider_unknown", status=422
        ) from error


def _allow(connection: Connection, caller: Caller, session: UUID, *, asked: bool = False) -> None:
    """Raises Refused `not_yours` (403)."""
    found = fetch(connection, OWNS, {"who": caller.principal.id, "session": session})
    if not asked and caller.principal.role is not Role.ADMIN and (found is None or not found["owns"]):
        raise Refused("this is not your money: ask whose session it is, or an admin", code="not_yours", status=403)

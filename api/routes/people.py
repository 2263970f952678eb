"""People of the team and their tokens: an admin's. A token is shown once, in the answer that made it."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

from fastapi import APIRouter
from starlette.responses import Response

from api import answers, cancelling, commands, pages
from api.auth import allow
from api.commands import Answer
from api.injected import Reading, Serving, Writing, identifier
from api.openapi import accepts, gives
from api.reads import people
from api.services import Services
from api.wire.people import Person, PersonAsked, PersonChange, PersonPage, Token, TokenAsked, TokenPage
from shared.errors import NightshiftError
from shared.store import people as changing
from shared.store.pool import Connection
from shared.store.principals import new_token, token_digest
from shared.store.statements import every, stops
from shared.values import PrincipalKind, Role

router = APIRouter(tags=["people"])
MOST_AT_ONCE = 100


@router.get("/v1/people", responses=gives(PersonPage))
def list_people(
    serving: Serving, caller: Reading, limit: pages.Limit = pages.DEFAULT, cursor: pages.Cursor = None
) -> Response:
    """Who may sign in, by name."""
    allow(caller, Role.ADMIN)
    skip = pages.decode(cursor, 0)
    rows = serving.database.read(lambda c: people.page(c, skip, limit + 1))
    following = pages.encode(skip + limit) if len(rows) > limit else None
    return answers.ok(PersonPage(items=rows[:limit], next=following))


@router.post("/v1/people", status_code=201, openapi_extra=accepts(PersonAsked), responses=gives(Person, 201))
def add_person(serving: Serving, written: Writing) -> Response:
    """Add a person, or a service that acts by itself. They can sign in once they have a token."""
    allow(written.caller, Role.ADMIN)
    asked, by = written.body(PersonAsked), written.caller.principal.id

    def effect(connection: Connection) -> Answer:
        person = changing.add(connection, by, asked.name, PrincipalKind(asked.kind), asked.role)
        return Answer(201, answers.text(people.find(connection, person)))

    return commands.perform(serving, written, effect).response()


@router.patch("/v1/people/{person}", openapi_extra=accepts(PersonChange), responses=gives(Person))
def change_person(serving: Serving, written: Writing, person: str) -> Response:
    """Give another role, or take the access away. It holds within a second. What a person who is disabled has queued is
    cancelled and told in the audit; what runs goes on."""
    allow(written.caller, Role.ADMIN)
    id_, asked = identifier(person), written.body(PersonChange)
    by = written.caller.principal.id

    def effect(connection: Connection) -> Answer:
        people.find(connection, id_)
        changing.change(connection, by, id_, asked.role, asked.disabled)
        after = (lambda: _cancel_queued(serving, id_, by)) if asked.disabled else None
        return Answer(200, answers.text(people.find(connection, id_)), after=after)

    return commands.perform(serving, written, effect).response()


def _cancel_queued(serving: Services, person: UUID, by: UUID) -> None:
    """The first of them at once. No claim takes any, and the sweep cancels what is left."""
    values = {"person": person, "limit": MOST_AT_ONCE}
    try:
        for row in serving.database.read(lambda c: every(c, stops.OF_DISABLED, values)):
            cancelling.one(serving, row["id"], by, changing.cancel_of_disabled)
    except NightshiftError:
        return


@router.get("/v1/tokens", responses=gives(TokenPage))
def list_tokens(
    serving: Serving,
    caller: Reading,
    person: str | None = None,
    limit: pages.Limit = pages.DEFAULT,
    cursor: pages.Cursor = None,
) -> Response:
    """Tokens, newest first, without what they are."""
    allow(caller, Role.ADMIN)
    skip, whose = pages.decode(cursor, 0), None if person is None else identifier(person)
    rows = serving.database.read(lambda c: people.tokens(c, whose, skip, limit + 1))
    following = pages.encode(skip + limit) if len(rows) > limit else None
    return answers.ok(TokenPage(items=rows[:limit], next=following))


@router.post("/v1/tokens", status_code=201, openapi_extra=accepts(TokenAsked), responses=gives(Token, 201))
def add_token(serving: Serving, written: Writing) -> Response:
    """Make a token. A repetition under the same key answers without the token itself, which is stored nowhere."""
    allow(written.caller, Role.ADMIN)
    asked, made = written.body(TokenAsked), new_token()

    def effect(connection: Connection) -> Answer:
        people.find(connection, asked.person)
        id_ = changing.add_token(connection, written.caller.principal.id, asked.person, made, asked.label)
        return Answer(201, answers.text(people.token(connection, id_)))

    answer = commands.perform(serving, written, effect)
    if answer.status == 201:
        shown: dict[str, Any] = json.loads(answer.text)
        if serving.database.read(lambda c: _is_ours(c, UUID(shown["id"]), made)):
            return answers.ok(shown | {"token": made}, 201)
    return answer.response()


def _is_ours(connection: Connection, id_: UUID, made: str) -> bool:
    """Whether it was this request that made the token: not, where the answer is that of an earlier one."""
    found = connection.execute("select 1 from tokens where id = %s and digest = %s", (id_, token_digest(made)))
    return found.fetchone() is not None


@router.delete("/v1/tokens/{token}", responses=gives(Token))
def revoke_token(serving: Serving, written: Writing, token: str) -> Response:
    """Revoke at once; whoever uses it is refused within a second."""
    allow(written.caller, Role.ADMIN)
    id_ = identifier(token)

    def effect(connection: Connection) -> Answer:
        people.token(connection, id_)
        changing.revoke_token(connection, written.caller.principal.id, id_)
        return Answer(200, answers.text(people.token(connection, id_)))

    return commands.perform(serving, written, effect).response()

"""People and services with their tokens, as an admin sees them. What acts for a job is no one to sign in as."""

from __future__ import annotations

from typing import LiteralString
from uuid import UUID

from psycopg.rows import dict_row

from api import problems
from api.wire.people import Person, Token
from shared.store.pool import Connection

_PEOPLE: LiteralString = """
select p.id, p.name, p.kind, p.role, p.disabled_at is not null as disabled, p.created_at,
  (select count(*) from tokens t where t.principal = p.id and t.revoked_at is null)
    * (p.disabled_at is null)::int as tokens
from principals p where p.kind in ('person', 'service')
"""
ONE: LiteralString = _PEOPLE + " and p.id = %(person)s"
LIST: LiteralString = _PEOPLE + " order by p.name limit %(limit)s offset %(skip)s"
_TOKENS: LiteralString = """
select t.id, t.principal as person, p.name as person_name, t.label, t.created_at, t.revoked_at
from tokens t join principals p on p.id = t.principal
"""
TOKEN: LiteralString = _TOKENS + " where t.id = %(token)s"
TOKENS: LiteralString = _TOKENS + (
    " where %(person)s::uuid is null or t.principal = %(person)s"
    " order by t.created_at desc, t.id limit %(limit)s offset %(skip)s"
)


def find(connection: Connection, person: UUID) -> Person:
    """Raises Refused `not_found`."""
    row = connection.cursor(row_factory=dict_row).execute(ONE, {"person": person}).fetchone()
    if row is None:
        raise problems.not_found()
    return Person(**row)


def page(connection: Connection, skip: int, limit: int) -> list[Person]:
    cursor = connection.cursor(row_factory=dict_row).execute(LIST, {"skip": skip, "limit": limit})
    return [Person(**row) for row in cursor]


def token(connection: Connection, id_: UUID) -> Token:
    """Raises Refused `not_found`."""
    row = connection.cursor(row_factory=dict_row).execute(TOKEN, {"token": id_}).fetchone()
    if row is None:
        raise problems.not_found()
    return Token(**row)


def tokens(connection: Connection, person: UUID | None, skip: int, limit: int) -> list[Token]:
    values = {"person": person, "skip": skip, "limit": limit}
    return [Token(**row) for row in connection.cursor(row_factory=dict_row).execute(TOKENS, values)]

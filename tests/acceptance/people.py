"""Other people of the team: principals with tokens of their own, made where an admin would make them."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from dataclasses import dataclass
from uuid import UUID, uuid4

import httpx
import psycopg

from shared.store import principals
from shared.values import PrincipalKind, Role
from tests.acceptance.house import Rig, client


@dataclass(frozen=True, slots=True)
class Person:
    id: UUID
    token_id: UUID
    http: httpx.Client

    def revoke(self, stack: Rig) -> None:
        with psycopg.connect(stack.facts["database_url"], autocommit=True) as connection:
            assert principals.revoke_token(connection, self.token_id)


@contextlib.contextmanager
def person(stack: Rig, role: Role = Role.MEMBER) -> Generator[Person]:
    """Somebody new."""
    token = principals.new_token()
    with psycopg.connect(stack.facts["database_url"], autocommit=True) as connection:
        id_ = principals.ensure_principal(connection, f"person {uuid4()}", PrincipalKind.PERSON, role)
        token_id = principals.add_token(connection, id_, token, "acceptance")
    with client(stack.facts["url"], token) as http:
        yield Person(id_, token_id, http)

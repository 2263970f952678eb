"""A database with two connections that race, and rows made by hand."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import psycopg
import pytest

from shared.ids import uuid7
from shared.store import intake, principals
from shared.store.pool import Connection
from shared.values import OnBusy, PrincipalKind, Role, TurnClass

TEXT = '[{"type":"text","text":"hello"}]'


@dataclass(slots=True)
class Rows:
    """Sessions and turns by hand, over one autocommit connection."""

    url: str
    connection: Connection
    person: UUID

    def connect(self, *, autocommit: bool = False) -> Connection:
        return psycopg.connect(self.url, autocommit=autocommit)

    def session(self) -> UUID:
        new = intake.NewSession(self.person, "anthropic", "claude-sonnet-5-5", "/tmp/none")
        return intake.create_session(self.connection, new)

    def turn(self, session: UUID, turn_class: TurnClass = TurnClass.INTERACTIVE, person: UUID | None = None) -> UUID:
        new = intake.NewTurn(session, person or self.person, turn_class, TEXT, deadline_s=600, max_steps=90)
        with self.connection.transaction():
            return intake.admit(self.connection, new, on_busy=OnBusy.QUEUE, queue_bound=10_000).turn

    def prefix(self, session: UUID) -> None:
        self.connection.execute(
            "insert into prefixes (digest, system_text, stable_length, context_length, tools_text) "
            "values ('p', '[]', 0, 0, '[]') on conflict do nothing"
        )
        self.connection.execute("update sessions set prefix = 'p' where id = %s", (session,))

    def person_named(self, name: str) -> UUID:
        return principals.ensure_principal(self.connection, name, PrincipalKind.PERSON, Role.MEMBER)

    def value(self, query: str, *params: Any) -> Any:
        row = self.connection.execute(query.encode(), params).fetchone()
        assert row is not None
        return row[0]

    def message(self, connection: Connection, session: UUID, turn: UUID, fence: int, ordinal: int = 0) -> None:
        connection.execute(
            "insert into messages (session, turn, step, ordinal, author, role, content, fence) "
            "values (%s, %s, 1, %s, 'model', 'assistant', %s, %s)",
            (session, turn, ordinal, TEXT, fence),
        )


@pytest.fixture
def rows(database_url: str) -> Generator[Rows]:
    with psycopg.connect(database_url, autocommit=True) as connection:
        person = principals.ensure_principal(connection, "person", PrincipalKind.PERSON, Role.MEMBER)
        yield Rows(database_url, connection, person)


def in_thread(work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def new_boot() -> UUID:
    return uuid7()

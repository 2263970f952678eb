"""People, sessions and what was said in them, as rows that the product's own indexer has read; and who finds what."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import psycopg

from scheduler.index import Indexer
from shared import words
from shared.request import blocks
from shared.store import intake, principals, search
from shared.store.pool import Connection
from shared.store.search import Found, Scope
from shared.values import Audience, PrincipalKind, Role, SessionKind
from tests.scheduler.world import World


@dataclass
class Said:
    """One connection to a world of its own."""

    world: World
    connection: Connection

    def person(self, name: str = "somebody") -> UUID:
        return principals.ensure_principal(self.connection, f"{name} {uuid4()}", PrincipalKind.PERSON, Role.MEMBER)

    def session(self, owner: UUID, audience: Audience = Audience.PRIVATE, *people: UUID, **more: Any) -> UUID:
        new = intake.NewSession(owner, "anthropic", "m", "/none", audience=audience, people=people, **more)
        with self.connection.transaction():
            return intake.create_session(self.connection, new)

    def turn(self, session: UUID) -> UUID:
        row = self.connection.execute(
            "insert into turns (id, session, class, requested_by, admit_key, max_steps, deadline_s, status,"
            " finished_at, answer) select %s, id, 'interactive', owner, now(), 9, 60, 'done', now(), '' from sessions"
            " where id = %s returning id",
            (uuid4(), session),
        ).fetchone()
        assert row is not None
        return row[0]

    def say(self, session: UUID, *texts: str, author: str | None = None, turn: UUID | None = None) -> list[int]:
        """Messages of a turn of their own; by the session's owner unless `author` is model or tool."""
        turn = turn or self.turn(session)
        found: list[int] = []
        for ordinal, text in enumerate(texts):
            role = "assistant" if author == "model" else "user"
            block = blocks.tool_result("t", text) if author == "tool" else blocks.text(text)
            row = self.connection.execute(
                "insert into messages (session, turn, step, ordinal, author, role, content, fence)"
                " select id, %s, 1, %s, coalesce(%s, owner::text), %s, %s, fence from sessions where id = %s"
                " returning id",
                (turn, ordinal, author, role, blocks.join([block]), session),
            ).fetchone()
            assert row is not None
            found.append(row[0])
        return found

    def edit(self, session: UUID, kind: str, first: int, last: int | None = None) -> int:
        row = self.connection.execute(
            "insert into edits (session, kind, first, last, text, cause, fence)"
            " select id, %s, %s, %s, 'a summary', 'test', fence from sessions where id = %s returning id",
            (kind, first, last, session),
        ).fetchone()
        assert row is not None
        return row[0]

    def row(self, query: str, *params: Any) -> tuple[Any, ...]:
        row = self.connection.execute(query.encode(), params).fetchone()
        assert row is not None
        return row

    def index(self) -> None:
        with self.world.room() as room:
            Indexer(room).run()

    def find(self, scope: Scope | UUID, query: str, **more: Any) -> Found:
        asked = words.ask(query)
        assert asked is not None, query
        by = scope if isinstance(scope, Scope) else Scope((scope,))
        return search.search(self.connection, asked, by, limit=more.pop("limit", 10), **more)

    def found(self, scope: Scope | UUID, query: str, **more: Any) -> list[int]:
        """Ids of the messages found, best first."""
        return [hit.message for hit in self.find(scope, query, **more).hits]

    def eyes(self, session: UUID) -> Scope:
        """Of who reads along with that session."""
        scope = search.scope_of(self.connection, session, uuid4())
        assert scope is not None
        return scope


@contextmanager
def saying(world: World) -> Generator[Said]:
    with psycopg.connect(world.database_url, autocommit=True) as connection:
        yield Said(world, connection)


TEAM, PEOPLE, PRIVATE = Audience.TEAM, Audience.PEOPLE, Audience.PRIVATE
CHILD = SessionKind.CHILD

"""An API of this process in a thread, and people with tokens who talk to it."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx
import psycopg
from psycopg.rows import dict_row

from api.app import create_app
from api.server import build, listen, serve
from shared.settings import Settings
from shared.store import principals
from shared.values import PrincipalKind, Role


@dataclass(frozen=True, slots=True)
class Person:
    """A principal with a token, and a client that carries it."""

    id: UUID
    name: str
    token: str
    http: httpx.Client

    def post(self, path: str, body: Any = None, *, key: str | None = None) -> httpx.Response:
        return self.http.post(path, json=body, headers={"idempotency-key": key} if key else {})

    def get(self, path: str, **params: Any) -> httpx.Response:
        return self.http.get(path, params=params)

    def session(self, **body: Any) -> str:
        answer = self.post("/v1/sessions", body)
        assert answer.status_code == 201, answer.text
        return answer.json()["id"]

    def turn(self, session: str, text: str = "hello", **body: Any) -> str:
        answer = self.post(f"/v1/sessions/{session}/turns", {"input": text, **body})
        assert answer.status_code == 202, answer.text
        return answer.json()["turn"]["id"]


@dataclass(frozen=True, slots=True)
class Api:
    """A served API. `app` is the application object itself."""

    url: str
    settings: Settings
    app: Any

    def person(self, name: str, role: Role = Role.MEMBER) -> Person:
        """A new principal, whose name begins like that."""
        token = principals.new_token()
        name = f"{name} {uuid4().hex[:8]}"
        with psycopg.connect(self.settings.database_url, autocommit=True) as connection:
            id_ = principals.ensure_principal(connection, name, PrincipalKind.PERSON, role)
            principals.add_token(connection, id_, token, "test")
        return Person(id_, name, token, self.client(token))

    def client(self, token: str) -> httpx.Client:
        return httpx.Client(base_url=self.url, headers={"authorization": f"Bearer {token}"}, timeout=30)

    def rows(self, query: str, *params: Any) -> list[dict[str, Any]]:
        with psycopg.connect(self.settings.database_url, autocommit=True) as connection:
            return connection.cursor(row_factory=dict_row).execute(query.encode(), params).fetchall()

    def execute(self, query: str, *params: Any) -> None:
        with psycopg.connect(self.settings.database_url, autocommit=True) as connection:
            connection.execute(query.encode(), params)


@contextlib.contextmanager
def serving(settings: Settings) -> Generator[Api]:
    """An API on a free port for the length of a `with`."""
    app = create_app(settings)
    server = build(app)
    listening = listen("127.0.0.1", 0)
    ready = threading.Event()
    url: list[str] = []

    def tell(at: str) -> None:
        url.append(at)
        ready.set()

    thread = threading.Thread(target=lambda: asyncio.run(serve(server, app, listening, tell)), name="api", daemon=True)
    thread.start()
    try:
        assert ready.wait(15), "the API did not start"
        yield Api(url[0], settings, app)
    finally:
        server.should_exit = True
        thread.join(15)
        listening.close()
        assert not thread.is_alive(), "the API did not stop within 15 s"


def settings_for(database_url: str, redis_url: str, home: Path, **more: Any) -> Settings:
    return Settings(home=home, database_url=database_url, redis_url=redis_url, **more)

"""What the scheduler's tests stand on: real servers, a database each, and processes that are hurt from outside."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, LiteralString
from uuid import UUID, uuid4

import psycopg
from psycopg.rows import DictRow, dict_row

from scheduler.room import Room
from shared import stream
from shared.doorbell import Doorbell, celery_app
from shared.settings import Settings, load
from shared.store.intake import NewSession, NewTurn, admit, create_session
from shared.store.pool import Database
from shared.store.principals import ensure_principal
from shared.store.statements import admission, one, turn_end
from shared.values import OnBusy, PrincipalKind, Role, TurnClass
from tests.ground import until

ROOT = Path(__file__).parents[2]
PAYLOAD = '[{"type":"text","text":"what broke last night?"}]'


@dataclass
class World:
    """A migrated database of its own, and rows made the way that the API makes them."""

    database_url: str
    redis_url: str
    home: Path
    changes: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def environment(self) -> dict[str, str]:
        return {
            "NIGHTSHIFT_HOME": str(self.home),
            "NIGHTSHIFT_DATABASE_URL": self.database_url,
            "NIGHTSHIFT_REDIS_URL": self.redis_url,
            **self.changes,
        }

    @property
    def settings(self) -> Settings:
        return load(self.environment)

    @contextmanager
    def room(self, patience_s: float = 20.0) -> Generator[Room]:
        settings = self.settings
        database = Database(self.database_url, size=4, wait_s=3, patience_s=patience_s)
        app = celery_app(settings.redis_url, connections=4)
        made = Room(settings, database, Doorbell(app), stream.connect(settings.redis_url, connections=2))
        try:
            yield made
        finally:
            made.stop.set()
            database.close()
            app.close()

    @contextmanager
    def connection(self) -> Generator[psycopg.Connection]:
        with psycopg.connect(self.database_url, autocommit=True, connect_timeout=5) as connection:
            yield connection

    def rows(self, text: LiteralString, *params: Any) -> list[DictRow]:
        with self.connection() as connection:
            return connection.cursor(row_factory=dict_row).execute(text, params).fetchall()

    def row(self, text: LiteralString, *params: Any) -> DictRow:
        found = self.rows(text, *params)
        assert len(found) == 1, found
        return found[0]

    def do(self, text: LiteralString, *params: Any) -> None:
        with self.connection() as connection:
            connection.execute(text, params)

    def turn(self, turn_id: UUID) -> DictRow:
        return self.row("select * from turns where id = %s", turn_id)

    def principal(self, name: str = "ada") -> UUID:
        with self.connection() as connection:
            return ensure_principal(connection, name, PrincipalKind.PERSON, Role.MEMBER)

    def session(self, owner: UUID | None = None) -> UUID:
        new = NewSession(owner or self.principal(), "anthropic", "claude-sonnet-5-5", "workspaces/{session}")
        with self.connection() as connection:
            return create_session(connection, new)

    def admit(self, session: UUID | None = None, turn_class: TurnClass = TurnClass.INTERACTIVE) -> UUID:
        new = NewTurn(
            session or self.session(), self.principal(), turn_class, PAYLOAD, deadline_s=7200, max_steps=90
        )  # fmt: skip
        with self.connection() as connection, connection.transaction():
            return admit(connection, new, on_busy=OnBusy.QUEUE, queue_bound=100).turn

    def claim(self, turn: UUID) -> DictRow:
        """The turn runs under a holder that no `workers` row knows."""
        params = {"session": self.turn(turn)["session"], "turn": turn, "holder": UUID(int=1), "claim": uuid4()}
        with self.connection() as connection:
            held = one(connection, admission.CLAIM, params)
        assert held is not None
        return held

    def park(self, turn: UUID, wait_s: float | None, reason: str = "backoff") -> None:
        """Claim a queued turn and park it, by the statements that a worker uses."""
        held = self.claim(turn)
        params = {
            "session": held["session"], "turn": turn, "fence": held["fence"], "reason": reason, "wait_s": wait_s,
            "out": False,
        }  # fmt: skip
        with self.connection() as connection:
            assert one(connection, turn_end.PARK, params)


class Child:
    """A process of the tests that talks in JSON lines; hurt by signal from outside, ended when the test ends."""

    def __init__(self, module: str, environment: dict[str, str], *arguments: str) -> None:
        self.log = Path(environment["NIGHTSHIFT_HOME"]) / f"{module}-{secrets.token_hex(3)}.log"
        self._log = self.log.open("wb")
        inherited = {key: value for key, value in os.environ.items() if not key.startswith("NIGHTSHIFT_")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            cwd=ROOT, env={**inherited, **environment}, text=True, bufsize=1,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log,
        )  # fmt: skip

    @property
    def pid(self) -> int:
        return self.process.pid

    def line(self) -> str:
        assert self.process.stdout is not None
        said = self.process.stdout.readline().strip()
        assert said, f"it said nothing; its log: {self.log.read_text()[-3000:]}"
        return said

    def ask(self, command: str) -> Any:
        assert self.process.stdin is not None
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return json.loads(self.line())

    def send(self, number: int) -> None:
        self.process.send_signal(number)

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(10)
        for pipe in (self.process.stdin, self.process.stdout, self._log):
            if pipe is not None:
                pipe.close()


def seconds_until(condition: Callable[[], bool], seconds: float, what: str) -> float:
    """How long it took to come true."""
    begun = time.monotonic()
    until(condition, seconds, what)
    return time.monotonic() - begun

"""What tests stand on: the rehearsal provider as a process, a worker's parts in this process, sessions and turns made
by hand."""

from __future__ import annotations

import contextlib
import os
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

import psycopg
from psycopg.rows import dict_row
from redis.exceptions import ConnectionError as RedisConnectionError

from deploy.drill.provider import Rehearsal
from deploy.drill.rig import until
from deploy.drill.swallow import Proxy, swallowing
from shared import doorbell, logs, stream
from shared.life import Life
from shared.providers import resolve
from shared.request import blocks
from shared.settings import Settings
from shared.store import intake, principals
from shared.store.pool import Connection, Database
from shared.values import OnBusy, PrincipalKind, Role, TurnClass
from workers.hints import Turns
from workers.look import Slots, look
from workers.pause import Pauses
from workers.ports import Ports
from workers.process import routes_of
from workers.publish import Publisher

ROOT = Path(__file__).resolve().parents[1]
CLASSES = tuple(TurnClass)
T = TypeVar("T")


def drop_database(direct_url: str, name: str) -> None:
    """With whoever is connected. An autovacuum at work in it belongs to a superuser and is waited out."""
    with psycopg.connect(direct_url, autocommit=True) as connection:
        connection.execute("set statement_timeout = 0")

        def gone() -> bool:
            try:
                connection.execute(f"drop database {name} with (force)".encode())
            except psycopg.errors.InsufficientPrivilege:
                return False
            return True

        until(gone, 60, f"the end of database {name}")


@contextlib.contextmanager
def rehearsing(cwd: Path | None = None) -> Generator[Rehearsal]:
    """The provider as a process of its own, on a free port."""
    token = secrets.token_urlsafe(16)
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "NIGHTSHIFT_REHEARSAL_TOKEN": token}
    process = subprocess.Popen(
        [sys.executable, "-m", "deploy.main", "rehearsal"], stdout=subprocess.PIPE, text=True, env=env, cwd=cwd or ROOT
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert "ready" in line, line
        yield Rehearsal(line.split()[-1], process.pid, token)
    finally:
        process.terminate()
        process.wait(10)


@dataclass(slots=True)
class Once(Slots):
    """A slot that is given once."""

    given: bool = False

    def take(self) -> tuple[TurnClass, ...]:
        if self.given:
            return ()
        self.given = True
        self.used += 1
        return self.classes


@dataclass(slots=True)
class Ground:
    """A worker's parts in this process, on real servers."""

    settings: Settings
    ports: Ports
    person: UUID
    home: Path
    turns: Turns = field(default_factory=Turns)

    @property
    def database(self) -> Database:
        return self.ports.database

    def session(self, **more: Any) -> UUID:
        new = intake.NewSession(
            self.person,
            resolve.name(self.settings),
            more.pop("model", self.settings.model),
            str(self.home / "ws" / "{session}"),
            **more,
        )
        return self.database.read(lambda c: intake.create_session(c, new))

    def turn(self, session: UUID, text: str, **more: Any) -> UUID:
        """Admit a turn as the API would."""
        on_busy = more.pop("on_busy", OnBusy.QUEUE)
        new = intake.NewTurn(
            session, self.person, more.pop("turn_class", TurnClass.INTERACTIVE), blocks.join([blocks.text(text)]),
            deadline_s=more.pop("deadline_s", 600), max_steps=more.pop("max_steps", 90), **more,
        )  # fmt: skip

        def work(connection: Connection) -> UUID:
            with connection.transaction():
                return intake.admit(connection, new, on_busy=on_busy, queue_bound=100).turn

        return self.database.read(work)

    def look(self, size: int = 8) -> int:
        """Answer the doorbell once, here."""
        return look(self.ports, self.turns, Slots(size, CLASSES))

    def look_once(self, turn_class: TurnClass) -> int:
        """Run one turn of that class, and leave the rest where it is."""
        return look(self.ports, self.turns, Once(1, (turn_class,)))

    def forget_keys(self) -> None:
        """What is known of keys is lost in Redis and here: as if this worker had been started anew after a flush."""
        forget_keys(self.settings.redis_url)
        self.ports.routes.fleet = routes_of(self.settings, self.database).fleet

    def rows(self, query: str, *params: Any) -> list[dict[str, Any]]:
        with psycopg.connect(self.settings.database_url, autocommit=True) as connection:
            return connection.cursor(row_factory=dict_row).execute(query.encode(), params).fetchall()

    def one(self, query: str, *params: Any) -> dict[str, Any]:
        (row,) = self.rows(query, *params)
        return row

    def view(self, turn: UUID) -> dict[str, Any]:
        return self.one("select * from turns where id = %s", turn)

    def events(self, turn: UUID) -> list[stream.Event]:
        self.ports.publisher.flush()
        client: Any = stream.connect(self.settings.redis_url)
        entries = client.xrange(stream.key(turn))
        return [event for _, fields in entries if (event := stream.decode(fields)) is not None]

    def execute(self, query: str, *params: Any) -> None:
        with psycopg.connect(self.settings.database_url, autocommit=True) as connection:
            connection.execute(query.encode(), params)


@contextlib.contextmanager
def ground(
    database_url: str,
    redis_url: str,
    provider_url: str,
    home: Path,
    environ: Mapping[str, str] | None = None,
    **more: Any,
) -> Generator[Ground]:
    """Parts of one worker, alive in `workers`, without a Celery consumer: tests ring by calling `look`. `environ` is
    where keys are looked for."""
    more = {"provider_key": "test"} | more
    settings = Settings(
        home=home, database_url=database_url, redis_url=redis_url, provider_base_url=provider_url, rehearsal=True,
        strict=True, **more,
    )  # fmt: skip
    forget_keys(redis_url)
    logs.configure("warning")
    life = Life(settings, "worker", settings.slots, settings.classes)
    assert life.start(10)
    database = Database(database_url, size=6, wait_s=10, patience_s=30)
    routes = routes_of(settings, database, environ or {})
    publisher = Publisher(stream.connect(redis_url), life.may_act)
    ports = Ports(
        settings, database, routes, publisher, life, doorbell.Doorbell(doorbell.celery_app(redis_url)),
        Pauses(settings.pause_at),
    )  # fmt: skip
    with database.connection() as connection:
        person = principals.ensure_principal(connection, "person", PrincipalKind.PERSON, Role.MEMBER)
    try:
        yield Ground(settings, ports, person, home)
    finally:
        publisher.close()
        life.stop("test over")
        routes.close()
        database.close()


def forget_keys(redis_url: str) -> None:
    """What another test's provider was found to be is no news of this one's."""
    client: Any = stream.connect(redis_url)
    with contextlib.closing(client), contextlib.suppress(RedisConnectionError):  # some tests have none
        names = list(client.scan_iter(match="nightshift:manners:*"))
        if names:
            client.delete(*names)


@contextlib.contextmanager
def lossy_ground(
    database_url: str, redis_url: str, provider_url: str, home: Path, **more: Any
) -> Generator[tuple[Ground, Proxy]]:
    """The same worker behind a proxy that loses the reply to a COMMIT on demand, and nothing between them but one
    pool."""
    with (
        tempfile.TemporaryDirectory(prefix="ns-") as folder,
        swallowing(database_url, Path(folder)) as proxy,
        ground(proxy.url, redis_url, provider_url, home, **more) as made,
    ):
        yield made, proxy

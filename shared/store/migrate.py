"""Bring a database to this code's revision, and say clearly when it cannot be.

Also sets what each connection's role must carry: a pooled URL would lose what a session sets.
"""

from __future__ import annotations

import sys
from pathlib import Path

import psycopg
from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from psycopg import sql
from sqlalchemy import Engine, create_engine
from sqlalchemy.pool import NullPool

from shared import settings as settings_module
from shared.errors import FAILED, NightshiftError, SchemaMismatch, StoreUnavailable, exit_code
from shared.store import extensions
from shared.store.revision import current_revision, newer_text, unreachable_text

MINIMUM_SERVER = 150_000
ROLE_SETTINGS: dict[str, str] = {
    "idle_in_transaction_session_timeout": "5s",
    "lock_timeout": "3s",
    "statement_timeout": "10s",
    "tcp_keepalives_idle": "5",
    "tcp_keepalives_interval": "2",
    "tcp_keepalives_count": "3",
    "client_connection_check_interval": "2s",
    "timezone": "UTC",
}
"""architecture.md, "The fence": a worker frozen inside a transaction otherwise blocks its own rescue for ever."""

_LOCK = 7_231_000


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    return config


def _engine(url: str) -> Engine:
    scheme, _, rest = url.partition("://")
    return create_engine(
        f"{scheme.split('+')[0]}+psycopg://{rest}",
        poolclass=NullPool,
        connect_args={"options": "-c statement_timeout=0 -c lock_timeout=60s"},
    )


def upgrade(url: str, revision: str = "head") -> str:
    """Migrate up to `revision`; two at once wait for each other. Returns the revision. Raises SchemaMismatch."""
    return _run(url, revision, up=True)


def downgrade(url: str, revision: str) -> str:
    """Migrate down to `revision` ('base' for nothing)."""
    return _run(url, revision, up=False)


def _run(url: str, revision: str, *, up: bool) -> str:
    try:
        with psycopg.connect(url, autocommit=True, connect_timeout=5) as guard:
            _check_server(guard, installs=up)
            guard.execute("set statement_timeout = 0")
            guard.execute("set lock_timeout = 0")
            guard.execute("select pg_advisory_lock(%s)", (_LOCK,))
            set_role(guard)
            engine = _engine(url)
            with engine.connect() as connection:
                config = _config()
                config.attributes["connection"] = connection
                (command.upgrade if up else command.downgrade)(config, revision)
                connection.commit()
            engine.dispose()
            return current_revision(guard) or "base"
    except CommandError as error:
        raise SchemaMismatch(newer_text(str(error))) from error
    except psycopg.OperationalError as error:
        raise StoreUnavailable(unreachable_text(error)) from error


def _check_server(connection: psycopg.Connection, *, installs: bool) -> None:
    version = connection.info.server_version
    if version < MINIMUM_SERVER:
        raise SchemaMismatch(f"Postgres {version // 10_000} is too old: Nightshift needs 15 or later")
    hindrance = extensions.hindrance(connection) if installs else None
    if hindrance is not None:
        raise SchemaMismatch(hindrance)


def set_role(connection: psycopg.Connection) -> None:
    user, database = connection.info.user, connection.info.dbname
    for name, value in ROLE_SETTINGS.items():
        connection.execute(
            sql.SQL("alter role {} in database {} set {} = {}").format(
                sql.Identifier(user), sql.Identifier(database), sql.Identifier(name), sql.Literal(value)
            )
        )


def main(argv: list[str]) -> int:
    """`nightshift migrate [REVISION]`: up to REVISION (default head); a lower one migrates down."""
    try:
        url = settings_module.load().direct_url
        if not url:
            raise StoreUnavailable(
                "NIGHTSHIFT_DATABASE_URL is not set, and no local stack was named by NIGHTSHIFT_HOME"
            )
        target = argv[0] if argv else "head"
        with psycopg.connect(url, connect_timeout=5) as connection:
            found = current_revision(connection) or ""
        down = target == "base" or (target != "head" and target < found)
        revision = downgrade(url, target) if down else upgrade(url, target)
    except psycopg.OperationalError as error:
        sys.stderr.write(f"database_unavailable: {unreachable_text(error)}\n")
        return FAILED
    except NightshiftError as error:
        sys.stderr.write(f"{error.code}: {error.message}\n")
        return exit_code(error)
    sys.stdout.write(f"database at revision {revision}\n")
    return 0

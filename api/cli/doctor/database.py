"""Checks of the database: reachable, new enough, at this code's revision, its role set up, its clock near ours."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import psycopg

from api.cli.doctor.finding import Facts, Finding, failed, noted, ok
from shared.errors import SchemaMismatch
from shared.store import extensions, migrate, revision

PATIENCE_S = 5
MOST_SKEW_S = 2.0
# A Unix socket has no keep-alives: Postgres answers 0 for them there, whatever the role says.
_TCP_ONLY = frozenset(name for name in migrate.ROLE_SETTINGS if name.startswith("tcp_"))


def database(known: Facts) -> list[Finding]:
    if not known.database_url:
        return [noted("database", "not known here: set NIGHTSHIFT_DATABASE_URL to have it checked")]
    found = _look("database", known.database_url)
    if known.direct_url != known.database_url:
        found += _look("direct database", known.direct_url)
    return found


def _look(part: str, url: str) -> list[Finding]:
    try:
        connection = psycopg.connect(url, autocommit=True, connect_timeout=PATIENCE_S)
    except (psycopg.Error, ValueError) as error:
        words, _, mend = revision.unreachable_text(error).rpartition(": ")
        return [failed(part, words, mend)]
    with connection:
        version = connection.info.server_version
        seen = f"Postgres {version // 10_000}.{version % 10_000}, {_place(connection)}"
        if version < migrate.MINIMUM_SERVER:
            return [failed(part, seen, "Nightshift needs Postgres 15 or later: upgrade the server")]
        found = [ok(part, seen), _revision(part, connection), _extension(part, connection)]
        return [*found, _role(part, connection), _clock(part, connection)]


def _place(connection: psycopg.Connection) -> str:
    info = connection.info
    where = "a socket" if info.host.startswith("/") else f"{info.host}:{info.port}"
    return f"{where}, as {info.user}"


def _revision(part: str, connection: psycopg.Connection) -> Finding:
    try:
        revision.check(connection)
    except SchemaMismatch as error:
        seen, _, mend = error.message.rpartition(": ")
        return failed(f"{part} revision", seen, mend)
    return ok(f"{part} revision", f"at {revision.head_revision()}, as this code needs")


def _extension(part: str, connection: psycopg.Connection) -> Finding:
    """What search stands on. Where it is missing and could be had, migrating installs it."""
    version = extensions.version(connection)
    if version is not None:
        return ok(f"{part} extension", f"{extensions.NAME} {version}")
    seen, _, mend = (
        extensions.hindrance(connection) or f"{extensions.NAME} is not installed: run `nightshift migrate`"
    ).partition(": ")
    return failed(f"{part} extension", seen, mend)


def _role(part: str, connection: psycopg.Connection) -> Finding:
    """What the role must set is in force on a connection that asked for nothing: a pooler may swallow or alter it."""
    is_socket = connection.info.host.startswith("/")
    asked = {name: value for name, value in migrate.ROLE_SETTINGS.items() if not (is_socket and name in _TCP_ONLY)}
    wrong: list[str] = []
    for name, wanted in asked.items():
        row = connection.execute("select current_setting(%s)", (name,)).fetchone()
        if row is None or row[0] != wanted:
            wrong.append(f"{name} is {row[0] if row else 'unknown'} instead of {wanted}")
    if wrong:
        mend = (
            "run `nightshift migrate`, which sets them for the role, and let no pooler or client option override them"
        )
        return failed(f"{part} role", "; ".join(wrong), mend)
    return ok(f"{part} role", f"{len(asked)} settings are in force on a new connection")


def _clock(part: str, connection: psycopg.Connection) -> Finding:
    asked, begun = time.time(), time.monotonic()
    row = connection.execute("select clock_timestamp()").fetchone()
    took = time.monotonic() - begun
    assert row is not None
    stamp: datetime = row[0]
    skew = stamp.astimezone(UTC).timestamp() - (asked + took / 2)
    seen = f"the database's clock is {abs(skew) * 1000:.0f} ms {'ahead of' if skew > 0 else 'behind'} ours"
    if abs(skew) > MOST_SKEW_S:
        return failed(f"{part} clock", seen, "synchronise both machines (NTP): leases and logs are read against it")
    return ok(f"{part} clock", seen)

"""Migrations go up and down, on Postgres 18 and, where one is on this machine, on 15; and say what is wrong where they
cannot."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import warnings
from collections.abc import Generator
from pathlib import Path

import psycopg
import pytest
from alembic.script import ScriptDirectory

from deploy.local.servers import Servers, ephemeral
from shared.errors import SchemaMismatch, StoreUnavailable
from shared.store import extensions, migrate, revision
from shared.store.statements import REGISTRY
from tests.ground import drop_database
from tests.store import test_statements

DEBIAN_15 = Path("/usr/lib/postgresql/15/bin")
assert test_statements  # imports every module of statements

CATALOGUE = """
select 'column', table_name || '.' || column_name, data_type || coalesce(column_default, '') || is_nullable
  from information_schema.columns where table_schema = 'public'
union all select 'index', indexname, indexdef from pg_indexes where schemaname = 'public'
union all select 'trigger', tgname, pg_get_triggerdef(oid) from pg_trigger where not tgisinternal
union all select 'function', proname, prosrc from pg_proc where pronamespace = 'public'::regnamespace
union all select 'check', conname, pg_get_constraintdef(oid) from pg_constraint
  where connamespace = 'public'::regnamespace and contype <> 'n'
order by 1, 2
"""


@pytest.fixture
def empty_url(servers: Servers) -> Generator[str]:
    """A database with nothing in it."""
    with psycopg.connect(servers.postgres.direct_url, autocommit=True) as connection:
        connection.execute("create database empty_one")
    yield servers.postgres.direct_url.replace("/nightshift?", "/empty_one?")
    drop_database(servers.postgres.direct_url, "empty_one")


def _catalogue(url: str) -> list[tuple[str, ...]]:
    with psycopg.connect(url) as connection:
        return [row for row in connection.execute(CATALOGUE).fetchall() if "alembic" not in row[1]]


def _up_down_up(url: str) -> None:
    migrate.upgrade(url)
    first = _catalogue(url)
    assert len(first) > 150
    migrate.downgrade(url, "base")
    assert _catalogue(url) == []
    migrate.upgrade(url)
    assert _catalogue(url) == first


def test_migrations_go_up_and_down_and_up_to_the_same_schema(empty_url: str) -> None:
    _up_down_up(empty_url)


def test_migrating_twice_changes_nothing(empty_url: str) -> None:
    migrate.upgrade(empty_url)
    before = _catalogue(empty_url)
    migrate.upgrade(empty_url)
    assert _catalogue(empty_url) == before


def test_everything_works_on_postgres_15() -> None:
    if not DEBIAN_15.is_dir():
        assert not os.environ.get("CI"), "CI must have Postgres 15: .ci/run installs it"
        warnings.warn("Postgres 15: not here", stacklevel=1)
        return
    home = Path(tempfile.mkdtemp(prefix="ns-"))
    try:
        with ephemeral(home, pg_bin=DEBIAN_15) as running:
            assert running.postgres.version.startswith("15")
            url = running.postgres.direct_url
            _up_down_up(url)
            with psycopg.connect(url, autocommit=True) as connection:
                for statement in REGISTRY.values():
                    connection.execute(f"prepare p_{statement.name} as ".encode() + statement.numbered)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def test_the_revision_that_a_process_asks_for_is_the_one_that_migrating_ends_at() -> None:
    """Told from the names of files, so that no process loads Alembic for it."""
    script = ScriptDirectory(str(Path(migrate.__file__).parent / "migrations"))
    assert revision.head_revision() == script.get_current_head()
    assert all(re.fullmatch(r"\d{4}", one.revision) for one in script.walk_revisions())


def test_a_database_that_is_newer_than_the_code_is_refused_with_the_mend(database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("update alembic_version set version_num = '9999'")
        with pytest.raises(SchemaMismatch, match="newer than this code"):
            revision.check(connection)
    with pytest.raises(SchemaMismatch, match="newer than this code"):
        migrate.upgrade(database_url)


def test_a_database_without_a_schema_is_refused_with_the_mend(empty_url: str) -> None:
    with psycopg.connect(empty_url) as connection, pytest.raises(SchemaMismatch, match="nightshift migrate"):
        revision.check(connection)


def test_an_extension_that_cannot_be_had_is_named_with_the_mend_before_anything_is_done(
    empty_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with psycopg.connect(empty_url, autocommit=True) as connection:
        connection.execute("revoke create on database empty_one from current_user")
        with pytest.raises(SchemaMismatch, match="may not install the extension pg_trgm: as the database's owner run"):
            migrate.upgrade(empty_url)
        monkeypatch.setattr(extensions, "NAME", "pg_nothing")
        with pytest.raises(SchemaMismatch, match="does not have the extension pg_nothing: install the contrib modules"):
            migrate.upgrade(empty_url)
    assert _catalogue(empty_url) == []


def test_an_extension_of_somebody_elses_schema_is_used_and_left_there(empty_url: str) -> None:
    with psycopg.connect(empty_url, autocommit=True) as connection:
        connection.execute("create schema theirs")
        connection.execute("create extension pg_trgm schema theirs")
        connection.execute("create table theirs.texts (text text)")
        connection.execute("create index texts_trigrams on theirs.texts using gin (text theirs.gin_trgm_ops)")
        migrate.upgrade(empty_url)
        migrate.downgrade(empty_url, "base")
        assert extensions.version(connection) is not None


def test_a_wrong_password_is_named_and_not_shown(database_url: str) -> None:
    wrong = database_url.replace("nightshift:", "nightshift:wrong", 1)
    with pytest.raises(StoreUnavailable, match="user and password") as refused:
        migrate.upgrade(wrong)
    assert database_url.split(":")[2].split("@", maxsplit=1)[0] not in refused.value.message


def test_a_database_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="NIGHTSHIFT_DATABASE_URL"):
        migrate.upgrade(f"postgresql://nobody@/nothing?host={tmp_path}")


def test_a_new_connection_carries_what_the_role_must(database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        for name in ("idle_in_transaction_session_timeout", "lock_timeout", "statement_timeout"):
            row = connection.execute(f"show {name}".encode()).fetchone()
            assert row == (migrate.ROLE_SETTINGS[name],)

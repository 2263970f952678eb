"""Two revisions at once, as in every rolling upgrade: code of 0001 on the schema of today, code of today on 0001.

`revision_0001.json` holds what the code of revision 0001 says to the database: each of its named statements, and an
INSERT of its shape into each table. The schema is migrated first, while processes of the old code go on; they are then
restarted one by one. What starts checks the revision, so neither code ever begins on a schema that it does not know.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from deploy.local.servers import Servers
from shared.errors import WRONG_SETTINGS
from shared.store import migrate, revision
from shared.store.statements import numbered
from tests.ground import ROOT, drop_database
from tests.store.conftest import Rows

OLD: dict[str, Any] = json.loads((Path(__file__).parent / "revision_0001.json").read_text("utf-8"))
DEMANDED = """
select table_name || '.' || column_name from information_schema.columns
where table_schema = 'public' and is_nullable = 'NO' and column_default is null and is_identity = 'NO'
  and table_name = any(%s) and table_name || '.' || column_name <> all(%s)
"""


@pytest.fixture
def old_url(servers: Servers) -> Generator[str]:
    """A database at revision 0001."""
    with psycopg.connect(servers.postgres.direct_url, autocommit=True) as connection:
        connection.execute("create database old_one")
    url = servers.postgres.direct_url.replace("/nightshift?", "/old_one?")
    migrate.upgrade(url, "0001")
    yield url
    drop_database(servers.postgres.direct_url, "old_one")


def test_every_statement_of_old_code_is_understood_by_the_new_schema(rows: Rows) -> None:
    for name, text in OLD["statements"].items():
        rows.connection.execute(f"prepare old_{name} as ".encode() + numbered(text)[0])


def test_every_row_that_old_code_writes_is_taken_by_the_new_schema(rows: Rows) -> None:
    for text in OLD["rows"]:
        rows.connection.execute(text.replace("%(p)s", f"'{rows.person}'").encode())
    assert rows.value("select count(*) from turns where parent is not null or background") == 0


def test_no_column_that_came_later_is_demanded_of_old_code(rows: Rows, old_url: str) -> None:
    with psycopg.connect(old_url) as connection:
        found = connection.execute(
            "select table_name || '.' || column_name, table_name::text from information_schema.columns"
            " where table_schema = 'public'"
        ).fetchall()
    tables, columns = sorted({row[1] for row in found}), [row[0] for row in found]

    demanded = rows.connection.execute(DEMANDED, (tables, columns)).fetchall()

    assert demanded == []
    assert revision.head_revision() != "0001", "there is something later to be compared with"


@pytest.mark.parametrize("process", ["api", "worker", "scheduler"])
def test_new_code_on_the_old_schema_does_not_start_and_says_what_to_do(
    process: str, old_url: str, redis_url: str, tmp_path: Path
) -> None:
    """It must not be started again either: no restart migrates a database."""
    env = {
        "PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "NIGHTSHIFT_HOME": str(tmp_path),
        "NIGHTSHIFT_DATABASE_URL": old_url, "NIGHTSHIFT_REDIS_URL": redis_url, "NIGHTSHIFT_REHEARSAL": "1",
    }  # fmt: skip
    command = [sys.executable, "-m", "deploy.main", process]
    ended = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == WRONG_SETTINGS, ended.stderr
    assert "the database is at revision 0001, this code needs" in ended.stderr
    assert "run `nightshift migrate`" in ended.stderr

"""Real servers for the whole run, a database of its own for each test, the rehearsal provider over HTTP."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import uuid
from collections.abc import Generator
from pathlib import Path

import psycopg
import pytest

from deploy.local.servers import Servers, ephemeral
from shared.redact import REDACTOR
from shared.store import migrate
from tests.ground import Rehearsal, drop_database, rehearsing

for _name in [n for n in os.environ if n.endswith("_API_KEY") or n.startswith(("NIGHTSHIFT_", "AWS_"))]:
    del os.environ[_name]  # tests never read a provider key, nor a setting of the person who runs them


@pytest.fixture(scope="module", autouse=True)
def keys_of_this_module() -> Generator[None]:
    """A process never forgets a key that it has seen, and one that begins with a letter holds that letter back at the
    end of a text: the tests of another module have keys of their own."""
    kept = dict(vars(REDACTOR))
    yield
    vars(REDACTOR).update(kept)


@pytest.fixture(scope="session")
def servers() -> Generator[Servers]:
    home = Path(tempfile.mkdtemp(prefix="ns-"))
    try:
        with ephemeral(home) as running:
            yield running
    finally:
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(scope="session")
def template(servers: Servers) -> str:
    """A migrated database that others are copied from."""
    with psycopg.connect(servers.postgres.direct_url, autocommit=True) as connection:
        connection.execute("create database template_nightshift")
    migrate.upgrade(_named(servers, "template_nightshift"))
    return "template_nightshift"


@pytest.fixture
def database_url(servers: Servers, template: str) -> Generator[str]:
    """A fresh, migrated database."""
    with _database(servers, template) as url:
        yield url


@pytest.fixture(scope="module")
def module_database_url(servers: Servers, template: str) -> Generator[str]:
    """One for all tests of a module, whose sessions are of different tests."""
    with _database(servers, template) as url:
        yield url


@contextlib.contextmanager
def _database(servers: Servers, template: str) -> Generator[str]:
    name = f"t{uuid.uuid4().hex}"
    with psycopg.connect(servers.postgres.direct_url, autocommit=True) as connection:
        connection.execute(f"create database {name} template {template}".encode())
    url = _named(servers, name)
    with psycopg.connect(url, autocommit=True) as connection:
        migrate.set_role(connection)
    yield url
    drop_database(servers.postgres.direct_url, name)


@pytest.fixture
def redis_url(servers: Servers) -> str:
    return servers.valkey.url


@pytest.fixture(scope="session")
def provider() -> Generator[Rehearsal]:
    with rehearsing() as running:
        yield running


def _named(servers: Servers, name: str) -> str:
    return servers.postgres.direct_url.replace("/nightshift?", f"/{name}?")


@pytest.fixture(scope="module")
def other() -> Generator[Rehearsal]:
    """A second provider, with an address of its own."""
    with rehearsing() as running:
        yield running

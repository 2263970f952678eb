"""An API for each module, on a database of its own; each test has people of its own."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Generator

import psycopg
import pytest

from deploy.local.servers import Servers
from shared.values import Role
from tests.api.hand import Hand
from tests.api.serving import Api, Person, serving, settings_for
from tests.ground import drop_database


@pytest.fixture(scope="module")
def api(servers: Servers, template: str, tmp_path_factory: pytest.TempPathFactory) -> Generator[Api]:
    home = tmp_path_factory.mktemp("home")
    with fresh_database(servers, template) as url, serving(settings_for(url, servers.valkey.url, home)) as running:
        yield running


@contextlib.contextmanager
def fresh_database(servers: Servers, template: str) -> Generator[str]:
    name = f"api{uuid.uuid4().hex}"
    with psycopg.connect(servers.postgres.direct_url, autocommit=True) as connection:
        connection.execute(f"create database {name} template {template}".encode())
    yield servers.postgres.direct_url.replace("/nightshift?", f"/{name}?")
    drop_database(servers.postgres.direct_url, name)


@pytest.fixture
def anna(api: Api) -> Person:
    return api.person("anna")


@pytest.fixture
def ben(api: Api) -> Person:
    return api.person("ben")


@pytest.fixture
def admin(api: Api) -> Person:
    return api.person("the admin", Role.ADMIN)


@pytest.fixture
def hand(api: Api) -> Generator[Hand]:
    made = Hand(api.settings.database_url, api.settings.redis_url)
    yield made
    made.close()

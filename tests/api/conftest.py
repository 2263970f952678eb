"""An API for each test, on a database of its own."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from shared.values import Role
from tests.api.hand import Hand
from tests.api.serving import Api, Person, serving, settings_for


@pytest.fixture
def api(database_url: str, redis_url: str, tmp_path: Path) -> Generator[Api]:
    with serving(settings_for(database_url, redis_url, tmp_path)) as running:
        yield running


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
def hand(database_url: str, redis_url: str) -> Generator[Hand]:
    made = Hand(database_url, redis_url)
    yield made
    made.close()

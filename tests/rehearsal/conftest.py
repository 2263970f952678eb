"""Owns the provider that the tests of this folder share: one process, cleared before each test."""

from collections.abc import Iterator

import pytest

from tests.rehearsal.served import Served, serve


@pytest.fixture(scope="session")
def running() -> Iterator[Served]:
    with serve() as served:
        yield served


@pytest.fixture
def provider(running: Served) -> Served:
    running.control("reset")
    running.control("capture", directory=None)
    return running

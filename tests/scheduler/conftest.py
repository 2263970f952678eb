"""A world for each test: its own database in the run's servers, and processes that end with it."""

from __future__ import annotations

from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from tests.scheduler.world import Child, World


@pytest.fixture
def world(database_url: str, redis_url: str, tmp_path: Path) -> World:
    home = tmp_path / "home"
    home.mkdir()
    return World(database_url, redis_url, home)


@pytest.fixture
def child() -> Generator[Callable[..., Child]]:
    """Start processes of the test; each is ended with it."""
    started: list[Child] = []

    def start(module: str, environment: dict[str, str], *arguments: str) -> Child:
        started.append(Child(module, environment, *arguments))
        return started[-1]

    yield start
    for process in started:
        process.end()

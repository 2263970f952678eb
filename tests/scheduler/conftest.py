"""Servers for the module, a database for the test."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from deploy.local.servers import Servers, ephemeral
from tests.scheduler.world import Child, World, new_world


@pytest.fixture(scope="package")
def servers() -> Generator[Servers]:
    with tempfile.TemporaryDirectory(prefix="ns-sched-") as folder, ephemeral(Path(folder)) as running:
        yield running


@pytest.fixture
def world(servers: Servers, tmp_path: Path) -> World:
    return new_world(servers, tmp_path / "home")


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

"""Stacks that several faults share, and the table of what they cost."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest
from tests.chaos import figures
from tests.chaos.rig import Rig, stack
from tests.ground import Ground, Rehearsal, ground


@pytest.fixture(scope="module")
def alone() -> Generator[Rig]:
    """One worker."""
    with stack(workers=1, concurrency=8) as rig:
        yield rig


@pytest.fixture(scope="module")
def pair() -> Generator[Rig]:
    """Two workers, with slots for twenty turns."""
    with stack(workers=2, concurrency=12) as rig:
        yield rig


@pytest.fixture
def worker(database_url: str, redis_url: str, provider: Rehearsal, tmp_path: Path) -> Generator[Ground]:
    """One worker's parts in this process."""
    provider.reset()
    with ground(database_url, redis_url, provider.url, tmp_path) as made:
        yield made


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if figures.TABLE:
        terminalreporter.section("what each fault cost")
        for line in figures.table():
            terminalreporter.write_line(line)

"""Stacks that several faults share, and the table of what they cost."""

from __future__ import annotations

from collections.abc import Generator

import pytest
from tests.chaos import figures
from tests.chaos.rig import Rig, stack


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


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if figures.TABLE:
        terminalreporter.section("what each fault cost")
        for line in figures.table():
            terminalreporter.write_line(line)

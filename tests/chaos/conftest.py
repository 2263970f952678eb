"""Stacks that several faults share, and the table of what they cost."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from tests.chaos import figures
from tests.chaos.chain import Chain
from tests.chaos.longest import LongHaul, begun
from tests.chaos.rig import Rig, stack
from tests.ground import Ground, Rehearsal, ground


@pytest.fixture(scope="session")
def alone() -> Generator[Rig]:
    """One worker, which does not wait long for a provider that is silent."""
    with stack(workers=1, concurrency=16, settings={"read_timeout_s": 2, "first_byte_timeout_s": 6}) as rig:
        yield rig


@pytest.fixture(scope="session")
def chain(alone: Rig) -> Chain:
    """Its worker, killed at one point after another."""
    return Chain(alone)


@pytest.fixture(scope="session")
def pair() -> Generator[Rig]:
    """Two workers, with slots for twenty turns."""
    with stack(workers=2, concurrency=12) as rig:
        yield rig


@pytest.fixture(scope="session", autouse=True)
def long_haul(request: pytest.FixtureRequest) -> Generator[LongHaul | None]:
    """Outages of a whole minute, in a stack of their own, beside all other tests; begun first and waited for last."""
    if not any("long_haul" in item.nodeid for item in request.session.items):
        yield None
        return
    with begun() as haul:
        yield haul


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

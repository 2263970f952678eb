"""One worker's parts a test, on real servers, with a clock that a test may set."""

from __future__ import annotations

from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from deploy.local.servers import Servers
from shared.store import transcript
from tests.ground import Ground, Rehearsal, ground

Bodies = Callable[[object], list[bytes]]


@pytest.fixture
def worker(database_url: str, redis_url: str, provider: Rehearsal, tmp_path: Path) -> Generator[Ground]:
    provider.reset()
    with ground(database_url, redis_url, provider.url, tmp_path) as made:
        yield made


@pytest.fixture(scope="module")
def shared(
    servers: Servers, module_database_url: str, provider: Rehearsal, tmp_path_factory: pytest.TempPathFactory
) -> Generator[Ground]:
    """One worker's parts for all tests of a module, whose sessions are of different tests."""
    provider.reset()
    home = tmp_path_factory.mktemp("shared")
    with ground(module_database_url, servers.valkey.url, provider.url, home) as made:
        yield made


@pytest.fixture
def bodies(provider: Rehearsal, tmp_path: Path) -> Generator[Bodies]:
    """Every request body that a session sent, in order, as the provider received it."""
    captured = tmp_path / "captured"
    captured.mkdir()
    provider.post("capture", {"directory": str(captured)})
    yield lambda session: [path.read_bytes() for path in sorted(captured.glob(f"*{session}*.json"))]
    provider.post("capture", {"directory": None})


def advance(worker: Ground, seconds: float) -> None:
    """The database's clock goes on by so much; leases stay on the real one."""
    worker.execute("update test_clock set offset_s = offset_s + %s, target_s = offset_s + %s", seconds, seconds)


def assert_replayed(worker: Ground, session: object, sent: list[bytes]) -> None:
    """Each call of the session, rebuilt from rows, is to the byte what the provider received."""
    calls = worker.rows("select id from calls where session = %s order by seq", session)
    assert len(calls) == len(sent)
    for call, body in zip(calls, sent, strict=True):
        replayed = worker.database.read(lambda c, call=call: transcript.replay(c, call["id"]))
        assert replayed.agrees
        assert replayed.body == body

"""One stack for all that can share it: two beats, two schedulers, three workers, every request body captured.

Its scope is this folder: it must not idle through the rest of a run.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.acceptance.house import Fleet, capture, up
from tests.chaos.rig import Rig


@pytest.fixture(scope="session")
def grounds() -> Generator[Path]:
    """A folder outside every home, with a short name: sockets stand below it."""
    folder = Path(tempfile.mkdtemp(prefix="nsa-", dir="/tmp"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="package")
def fleet(grounds: Path) -> Generator[Rig]:
    crowd = Fleet(workers=3, concurrency=8, schedulers=2, beats=2)
    # A long session is one epoch here, whose calls are judged by each extending the last: the meter would end it.
    with up(grounds / "fleet", crowd, settings={"REHEARSAL": 1, "COMPACT_BY_METER": 0}) as stack:
        yield stack


@pytest.fixture(scope="package")
def captured(fleet: Rig, grounds: Path) -> Path:
    """Where the bodies of all calls of the shared stack are."""
    return capture(fleet.provider, grounds / "captured")

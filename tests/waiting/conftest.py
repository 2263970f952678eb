"""One worker's parts a test, with a tool that a person must allow."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from tests.ground import Ground, Rehearsal, ground


@pytest.fixture
def worker(database_url: str, redis_url: str, provider: Rehearsal, tmp_path: Path) -> Generator[Ground]:
    provider.reset()
    with ground(
        database_url, redis_url, provider.url, tmp_path, approve_tools="write_file", max_output_tokens=30_000
    ) as made:
        yield made

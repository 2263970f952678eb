"""A surface, and the environment of a client that talks to it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.surface import TOKEN, Surface, serving


@pytest.fixture
def surface(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Surface]:
    with serving() as made:
        monkeypatch.setenv("NIGHTSHIFT_URL", made.url)
        monkeypatch.setenv("NIGHTSHIFT_TOKEN", TOKEN)
        monkeypatch.setenv("NIGHTSHIFT_HOME", str(tmp_path))
        yield made

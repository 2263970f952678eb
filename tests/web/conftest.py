"""A site, and a run of a tool that may fetch from it."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from shared.boottime import boottime
from tests.web.site import Site, serving
from workers.tools.context import ToolContext


@pytest.fixture
def site() -> Generator[Site]:
    with serving() as made:
        yield made


@pytest.fixture
def context(tmp_path: Path) -> ToolContext:
    return ToolContext("session", "turn", 1, 0, tmp_path, None, lambda: False, boottime() + 60)

"""A world for each test, as the scheduler's tests have it."""

from __future__ import annotations

from tests.scheduler.conftest import child, world

__all__ = ["child", "world"]

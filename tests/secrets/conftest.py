"""One worker's parts a test."""

from __future__ import annotations

from tests.loop.conftest import worker

__all__ = ["worker"]

"""Hints to running workers by Redis pub/sub, so that a cancel or a steer acts at once. A worker also asks Postgres."""

from __future__ import annotations

import contextlib
import time
from typing import Literal
from uuid import UUID

import redis

from shared import stream

_SILENCE_S = 2.0


class Hints:
    """`tell` never raises; after a failure it is silent for two seconds: a broken Redis is not waited for each time."""

    def __init__(self, url: str) -> None:
        self._client = stream.connect(url, connections=4, timeout_s=0.5)
        self._silent_until = 0.0

    def tell(self, what: Literal["cancel", "steer"], turn: UUID) -> bool:
        if time.monotonic() < self._silent_until:
            return False
        try:
            self._client.publish(stream.HINTS, f"{what}:{turn}")  # pyright: ignore[reportUnknownMemberType] - redis-py
        except redis.RedisError:
            self._silent_until = time.monotonic() + _SILENCE_S
            return False
        return True

    def close(self) -> None:
        with contextlib.suppress(redis.RedisError):
            self._client.close()

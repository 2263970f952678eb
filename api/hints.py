"""Hints by Redis: to running workers, so that a cancel or a steer acts at once, and to who watches a turn. A worker
also asks Postgres."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any, Literal
from uuid import UUID

import redis

from shared import stream

_SILENCE_S = 2.0


class Hints:
    """Nothing here raises; after a failure it is silent for two seconds: a broken Redis is not waited for each time."""

    def __init__(self, url: str) -> None:
        self._client = stream.connect(url, connections=4, timeout_s=0.5)
        self._silent_until = 0.0

    def tell(self, what: Literal["cancel", "steer"], turn: UUID) -> bool:
        return self._send(lambda: self._client.publish(stream.HINTS, f"{what}:{turn}"))  # pyright: ignore[reportUnknownMemberType] - redis-py

    def aside(self, aside: stream.Aside) -> bool:
        """To who watches that turn."""
        keys, args = stream.tell_args(aside)
        given: list[Any] = [*keys, *args]
        return self._send(lambda: self._client.eval(stream.TELL, len(keys), *given))

    def _send(self, work: Callable[[], object]) -> bool:
        if time.monotonic() < self._silent_until:
            return False
        try:
            work()
        except redis.RedisError:
            self._silent_until = time.monotonic() + _SILENCE_S
            return False
        return True

    def close(self) -> None:
        with contextlib.suppress(redis.RedisError):
            self._client.close()

"""Owns what was written once for a message on a wire that is not ours, bounded by its characters: a session's past goes
out with each of its calls."""

from __future__ import annotations

import threading
from collections.abc import Callable

CHARS_LIMIT = 48_000_000

Key = tuple[object, ...]
Items = tuple[str, ...]


class Kept:
    """Safe under threads. What it gives is what `write` would: it is asked only with keys that decide it wholly."""

    def __init__(self, limit: int = CHARS_LIMIT) -> None:
        self._limit = limit
        self._known: dict[Key, Items] = {}
        self._chars = 0
        self._lock = threading.Lock()

    def get(self, key: Key, write: Callable[[], Items]) -> Items:
        found = self._known.get(key)
        if found is None:
            found = write()
            size = sum(map(len, found))
            with self._lock:
                if self._chars + size > self._limit:  # all of it: what is still wanted is soon there again
                    self._known.clear()
                    self._chars = 0
                if self._known.setdefault(key, found) is found:
                    self._chars += size
        return found

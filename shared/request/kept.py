"""Owns what was written once for a message on a wire that is not ours, bounded by the characters that it keeps: a
session's past goes out with each of its calls."""

from __future__ import annotations

import threading
from collections.abc import Callable

CHARS_LIMIT = 48_000_000
ENTRY_CHARS, STRING_CHARS = 250, 50
"""What an entry and each string of it take beside their characters, as measured: of short messages that is the most."""

Key = tuple[str, tuple[str, ...], object]
"""Role, blocks, and what else decides. The blocks are kept as well as what is written of them: of reasoning that is
sealed for another wire nothing may be written, and it is long."""
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
            size = ENTRY_CHARS + sum(STRING_CHARS + len(one) for one in (*key[1], *found))
            with self._lock:
                if self._chars + size > self._limit:  # all of it: what is still wanted is soon there again
                    self._known.clear()
                    self._chars = 0
                if self._known.setdefault(key, found) is found:
                    self._chars += size
        return found

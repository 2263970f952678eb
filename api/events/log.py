"""What was sent of one turn, kept to be sent again: to each viewer from its own place, and to who comes back.

Bounded in bytes. Who is behind its beginning has to begin anew with a snapshot.
"""

from __future__ import annotations

from collections import deque

MOST_BYTES = 4 * 1024 * 1024
UNRESUMABLE = ".0"
"""No writer numbers an event 0. An id with it is never found again, so who comes back with it gets a snapshot."""


class Log:
    """Places are absolute and only rise; `base` is the first that is still kept."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self.base = 0
        self.last_id: str | None = None
        self._most = most_bytes
        self._size = 0
        self._items: deque[tuple[str, bytes]] = deque()
        self._places: dict[str, int] = {}

    @property
    def end(self) -> int:
        return self.base + len(self._items)

    def append(self, id_: str, data: bytes) -> None:
        if not id_.endswith(UNRESUMABLE):
            self._places[id_] = self.end
        self._items.append((id_, data))
        self._size += len(data)
        self.last_id = id_
        while self._size > self._most and len(self._items) > 1:
            old, gone = self._items.popleft()
            self._size -= len(gone)
            if self._places.get(old) == self.base:
                del self._places[old]
            self.base += 1

    def after(self, id_: str) -> int | None:
        """The place behind the event of that id, or None where it is not kept."""
        place = self._places.get(id_)
        return None if place is None else place + 1

    def read(self, place: int, most: int = 64 * 1024) -> tuple[bytes, int]:
        """Data from a place on, about `most` bytes of it, and the place behind. `place` must be kept."""
        chunks: list[bytes] = []
        size, at = 0, place
        while at < self.end and size < most:
            data = self._items[at - self.base][1]
            chunks.append(data)
            size += len(data)
            at += 1
        return b"".join(chunks), at

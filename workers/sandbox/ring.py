"""The last of an output that may go on for hours, by offset: a reader asks from where it was, hears what is gone."""

from __future__ import annotations

import threading

MOST = 1 << 20


class Ring:
    """Keeps the last `MOST` bytes; offsets count from the first byte that ever came. For several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._data = bytearray()
        self._from = 0

    def take(self, piece: bytes) -> None:
        with self._lock:
            self._data += piece
            if len(self._data) > 2 * MOST:
                self._from += len(self._data) - MOST
                del self._data[:-MOST]

    def forget(self) -> None:
        """Keep nothing of what came."""
        with self._lock:
            self._from += len(self._data)
            self._data = bytearray()

    @property
    def size(self) -> int:
        """Bytes that are kept."""
        return len(self._data)

    @property
    def end(self) -> int:
        with self._lock:
            return self._from + len(self._data)

    def read(self, offset: int, most: int) -> tuple[int, bytes]:
        """From `offset`, or from the first byte that is still there, at most `most` bytes; and where they begin."""
        with self._lock:
            begin = min(max(offset, self._from), self._from + len(self._data))
            return begin, bytes(self._data[begin - self._from : begin - self._from + most])

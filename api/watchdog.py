"""Frees handlers from a server that answers nothing, not even an error: their connections are shut down from outside.

As `shared.store.deadline`, for many short waits: one thread looks four times a second, where a timer a request would
cost more than the request.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Generator

from shared.store.pool import Connection

LOOK_S = 0.25


class Watchdog:
    """One a pool."""

    def __init__(self) -> None:
        self._watched: dict[socket.socket, float] = {}
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watchdog", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Who still waits is freed now: a thread that hangs would keep the process from ending."""
        self._stop.set()
        self._thread.join(1)
        self._free(float("inf"))

    @contextlib.contextmanager
    def within(self, connection: Connection, seconds: float) -> Generator[None]:
        """What blocks on `connection` inside the `with` raises psycopg.OperationalError soon after `seconds`."""
        # A duplicate: the number of the connection's own descriptor may name another file when its time is over.
        handle = socket.socket(fileno=os.dup(connection.fileno()))
        with self._lock:
            self._watched[handle] = time.monotonic() + seconds
        try:
            yield
        finally:
            with self._lock:
                self._watched.pop(handle, None)
            handle.close()

    def _run(self) -> None:
        while not self._stop.wait(LOOK_S):
            self._free(time.monotonic())

    def _free(self, now: float) -> None:
        with self._lock:
            for handle in [one for one, deadline in self._watched.items() if deadline < now]:
                del self._watched[handle]
                with contextlib.suppress(OSError):
                    handle.shutdown(socket.SHUT_RDWR)

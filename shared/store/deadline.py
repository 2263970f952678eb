"""A bound on how long a connection may be silent, kept from outside.

Psycopg waits for an answer without end, and the kernel of a stopped server still acknowledges packets, so neither
statement_timeout nor keepalives free the thread that waits. Shutting its socket down does, and costs the connection.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Generator

from shared.store.pool import Connection


@contextlib.contextmanager
def within(connection: Connection, seconds: float) -> Generator[None]:
    """What blocks on `connection` inside the `with` raises psycopg.OperationalError after `seconds`."""
    # A duplicate: the number of the connection's own descriptor may name another file by the time that the timer fires.
    handle = socket.socket(fileno=os.dup(connection.fileno()))
    timer = threading.Timer(seconds, _shut, (handle,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        handle.close()


def _shut(handle: socket.socket) -> None:
    with contextlib.suppress(OSError):
        handle.shutdown(socket.SHUT_RDWR)

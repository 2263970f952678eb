"""The process's connections to Postgres, and the one place where a lost or refused transaction is tried again.

Raw psycopg 3, autocommit, every statement prepared (hot-path.md). A COMMIT whose reply is lost is never resent: the
caller hands in `recover`, which reads, under the session's row lock, whether the write is there.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, TypeVar

import psycopg
import structlog
from psycopg.rows import TupleRow
from psycopg_pool import ConnectionPool, PoolTimeout

from shared.errors import LeaseLost, StoreUnavailable
from shared.store.revision import unreachable_text

T = TypeVar("T")
Connection = psycopg.Connection[TupleRow]

FENCE_STATE = "NS001"
_AGAIN = (
    psycopg.errors.DeadlockDetected,
    psycopg.errors.SerializationFailure,
    psycopg.errors.LockNotAvailable,
    psycopg.errors.QueryCanceled,
)
LOST = (psycopg.OperationalError, psycopg.InterfaceError, psycopg.errors.IdleInTransactionSessionTimeout)
"""How a lost connection shows, here and in the API. The last one is psycopg's InternalError: a process that stood still
for five seconds, its lease far from over."""
log = structlog.get_logger("store")
retries: Counter[str] = Counter()
"""How often a transaction was tried again, by the error's class: read by the metrics."""


def _configure(connection: Connection) -> None:
    connection.prepare_threshold = 0
    connection.prepared_max = 300


def open_pool(
    url: str, *, size: int = 10, wait_s: float = 10.0, name: str = "nightshift"
) -> ConnectionPool[Connection]:
    """A FIFO pool of `size` connections, autocommit; `getconn` waits at most `wait_s` seconds. The server shows whose
    they are: the name, and the process's id."""
    return ConnectionPool(
        url,
        min_size=min(2, size),
        max_size=size,
        timeout=wait_s,
        open=True,
        name=name,
        configure=_configure,
        kwargs={"autocommit": True, "application_name": f"{name} {os.getpid()}", "connect_timeout": 5},
        reconnect_timeout=5,
        max_idle=600,
    )


class Database:
    """A pool, and how its users survive a database that goes away for a while."""

    def __init__(self, url: str, *, size: int = 10, wait_s: float = 10.0, patience_s: float = 150.0) -> None:
        self._pool = open_pool(url, size=size, wait_s=wait_s)
        self._wait_s = wait_s
        self.patience_s = patience_s
        self.stop = threading.Event()

    def close(self) -> None:
        self.stop.set()
        self._pool.close(timeout=2)

    @contextmanager
    def connection(self) -> Generator[Connection]:
        """One connection in autocommit. Raises StoreUnavailable when none is to be had in time."""
        try:
            connection = self._pool.getconn()
        except PoolTimeout as error:
            raise StoreUnavailable("the database did not give a connection in time: try again shortly") from error
        try:
            yield connection
        finally:
            self._pool.putconn(connection)

    def read(self, work: Callable[[Connection], T]) -> T:
        """Run reads or a compare-and-set that may be sent twice; waits out an outage up to `patience_s`."""
        return self.write(work, recover=None)

    def write(
        self,
        work: Callable[[Connection], T],
        *,
        recover: Callable[[Connection], T | None] | None,
        patience_s: float | None = None,
    ) -> T:
        """Run `work`, which is one transaction. What is true afterwards: it happened exactly once, or an error says
        not.

        `recover(connection)` is asked after a connection was lost in the middle: it returns the result if the write is
        there, None if it is not, or raises LeaseLost. Without it `work` must be safe to send twice.
        """
        deadline = time.monotonic() + (self.patience_s if patience_s is None else patience_s)
        attempt, doubt = 0, False
        while True:
            attempt += 1
            try:
                with self.connection() as connection:
                    if doubt and recover is not None:
                        with connection.transaction():
                            found = recover(connection)
                        if found is not None:
                            return found
                    doubt = True
                    return work(connection)
            except _AGAIN as error:
                doubt = isinstance(error, psycopg.errors.QueryCanceled)
                self._again(error, attempt, deadline)
            except LOST as error:
                self._again(error, attempt, deadline)
            except StoreUnavailable as error:
                self._again(error, attempt, deadline)
            except psycopg.Error as error:
                if error.sqlstate == FENCE_STATE:
                    raise LeaseLost from error
                raise

    def _again(self, error: Exception, attempt: int, deadline: float) -> None:
        """Wait before the next try, or give up. Broken connections are replaced first."""
        retries[type(error).__name__] += 1
        pause = min(0.02 * 2 ** min(attempt, 6), 1.0)
        if self.stop.is_set() or time.monotonic() + pause > deadline:
            if isinstance(error, StoreUnavailable):
                raise error
            raise StoreUnavailable(unreachable_text(error)) from error
        log.warning("store.again", error=type(error).__name__, attempt=attempt)
        if isinstance(error, LOST) and not isinstance(error, _AGAIN):
            self._pool.check()
        self.stop.wait(pause)

    def stats(self) -> dict[str, Any]:
        return dict(self._pool.get_stats())

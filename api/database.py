"""The API's connections for handlers in the thread pool. The invariant: no request waits for Postgres without a bound.

A connection is waited for at most 2 s, an answer at most 5 s, also from a server that was frozen. Work that lost its
connection is done again only by who can tell whether it had happened: `work` is told that it is a repetition.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import psycopg
import structlog
from psycopg_pool import PoolClosed, PoolTimeout

from api.watchdog import Watchdog
from shared.errors import StoreUnavailable
from shared.store.pool import LOST, Connection, open_pool, retries

T = TypeVar("T")
POOL = 10
WAIT_S = 2.0
ANSWER_S = 5.0
_TRIES = POOL + 4  # after a restart of the server each connection of the pool may turn out dead
_AGAIN = (
    psycopg.errors.DeadlockDetected,
    psycopg.errors.SerializationFailure,
    psycopg.errors.LockNotAvailable,
)
log = structlog.get_logger("api")


class Database:
    """A pool whose users never hang."""

    def __init__(self, url: str, *, size: int = POOL, wait_s: float = WAIT_S, answer_s: float = ANSWER_S) -> None:
        self._pool = open_pool(url, size=size, wait_s=wait_s, name="nightshift-api")
        self._watchdog = Watchdog()
        self._wait_s = wait_s
        self._answer_s = answer_s

    def close(self) -> None:
        self._watchdog.close()
        self._pool.close(timeout=1)

    def run(self, work: Callable[[Connection, bool], T]) -> T:
        """The result of `work(connection, again)`; `again`: an earlier try may have landed. Raises StoreUnavailable."""
        deadline = time.monotonic() + self._wait_s
        doubt = False
        for attempt in range(_TRIES):
            try:
                with self._pool.connection() as connection, self._watchdog.within(connection, self._answer_s):
                    return work(connection, doubt)
            except PoolTimeout as error:
                raise self._unavailable() from error
            except PoolClosed as error:
                raise StoreUnavailable("this server is shutting down: try again") from error
            except _AGAIN as error:
                self._give_up_after(deadline, error)
                time.sleep(0.01 * 2 ** min(attempt, 4))
            except psycopg.errors.QueryCanceled as error:
                raise StoreUnavailable("the database took too long: ask for less, or try again") from error
            except LOST as error:
                doubt = True
                self._give_up_after(deadline, error)
        raise self._unavailable()

    def read(self, work: Callable[[Connection], T]) -> T:
        """The result of reads, which may be sent twice."""
        return self.run(lambda connection, _: work(connection))

    def _give_up_after(self, deadline: float, error: Exception) -> None:
        retries[type(error).__name__] += 1
        if time.monotonic() > deadline:
            log.warning("api.database_lost", error=type(error).__name__)
            raise StoreUnavailable(
                "the database did not answer in time; a change may or may not have been made: repeat it with the same"
                " Idempotency-Key"
            ) from error

    def _unavailable(self) -> StoreUnavailable:
        if self._pool.get_stats().get("pool_size", 0) > 0:
            return StoreUnavailable("all connections to the database are busy: try again shortly", code="database_busy")
        return StoreUnavailable("the database cannot be reached at the moment: try again shortly")

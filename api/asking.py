"""Reads of the event loop: a small async pool whose every wait is bounded, so that nothing there hangs with Postgres.

A frozen server answers neither a query nor a cancel request; only shutting the socket down ends the wait.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Generator, Mapping
from typing import Any, LiteralString

import psycopg
from psycopg.rows import DictRow, dict_row
from psycopg_pool import AsyncConnectionPool, PoolClosed, PoolTimeout

from shared.errors import StoreUnavailable
from shared.store.pool import LOST

AsyncConnection = psycopg.AsyncConnection[DictRow]


async def _configure(connection: AsyncConnection) -> None:
    connection.prepare_threshold = 0


class Asking:
    """Opened and closed with the app."""

    def __init__(self, url: str, *, size: int = 4, wait_s: float = 2.0) -> None:
        self._size = size
        self._wait_s = wait_s
        self._pool: AsyncConnectionPool[AsyncConnection] = AsyncConnectionPool(
            url,
            min_size=1,
            max_size=size,
            timeout=wait_s,
            open=False,
            name="nightshift-api-async",
            configure=_configure,
            kwargs={
                "autocommit": True,
                "application_name": "nightshift-api-async",
                "connect_timeout": 5,
                "row_factory": dict_row,
            },
            reconnect_timeout=5,
        )

    async def open(self) -> None:
        """Begin to connect; a database that is away does not hold up the start."""
        await self._pool.open(wait=False)

    async def close(self) -> None:
        await self._pool.close(timeout=1)

    async def rows(
        self, text: LiteralString, params: Mapping[str, Any] | None = None, *, wait_s: float | None = None
    ) -> list[DictRow]:
        """All rows of one read. Raises StoreUnavailable within about twice `wait_s`."""
        bound = self._wait_s if wait_s is None else wait_s
        for attempt in range(self._size + 1):
            try:
                async with self._pool.connection(timeout=bound) as connection:
                    with _within(connection, bound):
                        cursor = await connection.execute(text, params)
                        return await cursor.fetchall()
            except PoolTimeout as error:
                raise StoreUnavailable("the database did not give a connection in time: try again shortly") from error
            except PoolClosed as error:
                raise StoreUnavailable("this server is shutting down: try again") from error
            except psycopg.errors.QueryCanceled as error:
                raise StoreUnavailable("the database took too long: try again") from error
            except _Overdue as error:
                raise StoreUnavailable("the database did not answer in time: try again shortly") from error
            except LOST as error:  # a connection that died while it lay idle; each of the pool may have
                if attempt == self._size:
                    raise StoreUnavailable("the database cannot be reached at the moment: try again shortly") from error
        raise StoreUnavailable("the database cannot be reached at the moment: try again shortly")


class _Overdue(Exception):
    """The bound fired: this try is the last one."""


@contextlib.contextmanager
def _within(connection: AsyncConnection, seconds: float) -> Generator[None]:
    handle = socket.socket(fileno=os.dup(connection.fileno()))
    fired = False

    def shut() -> None:
        nonlocal fired
        fired = True
        with contextlib.suppress(OSError):
            handle.shutdown(socket.SHUT_RDWR)

    timer = asyncio.get_running_loop().call_later(seconds, shut)
    try:
        yield
    except LOST as error:
        if fired:
            raise _Overdue from error
        raise
    finally:
        timer.cancel()
        handle.close()

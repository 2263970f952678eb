"""Places in the thread pool. The invariant: a handler that gets a thread waited at most two seconds for it.

The pool's own queue has no bound; so a seat is taken before it, and there are as many seats as threads.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from shared.errors import StoreUnavailable

THREADS = 40
WAIT_S = 2.0


class Seats:
    def __init__(self, count: int = THREADS) -> None:
        self._free = asyncio.Semaphore(count)
        self.taken = 0

    @asynccontextmanager
    async def take(self) -> AsyncGenerator[None]:
        """Raises StoreUnavailable `server_busy` (503) after two seconds."""
        try:
            async with asyncio.timeout(WAIT_S):
                await self._free.acquire()
        except TimeoutError as error:
            raise StoreUnavailable("the server is busy: try again shortly", code="server_busy") from error
        self.taken += 1
        try:
            yield
        finally:
            self.taken -= 1
            self._free.release()

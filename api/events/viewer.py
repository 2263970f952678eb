"""One connection that watches a turn: how it is woken, and how it is told to go."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field


@dataclass(eq=False, slots=True)
class Viewer:
    """`farewell` is the last thing that it is sent; `gone`: it hung up."""

    digest: bytes
    more: asyncio.Event = field(default_factory=asyncio.Event)
    farewell: bytes | None = None
    gone: bool = False
    started: bool = False
    joined_at: float = field(default_factory=time.monotonic)

    def leave(self, farewell: bytes) -> None:
        if self.farewell is None:
            self.farewell = farewell
            self.more.set()

    def hang_up(self) -> None:
        self.gone = True
        self.more.set()

    async def wait(self, most_s: float) -> bool:
        """True once there may be more to send, False after `most_s`."""
        try:
            async with asyncio.timeout(most_s):
                await self.more.wait()
        except TimeoutError:
            return False
        self.more.clear()
        return True

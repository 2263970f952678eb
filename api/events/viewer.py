"""One connection that watches a turn: how it is woken, told to go, kept warm, and found out to be stuck.

No timers of its own: the hub looks after all viewers once a second, since a thousand timers a broadcast cost more than
the sending.
"""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass, field

HEARTBEAT_S = 13.0
STUCK_S = 30.0
UNBEGUN_S = 15.0


@dataclass(eq=False, slots=True)
class Viewer:
    """`farewell` is the last thing that it is sent; `gone`: it hung up; `task` writes to it, once that has begun."""

    digest: bytes
    more: asyncio.Event = field(default_factory=asyncio.Event)
    farewell: bytes | None = None
    gone: bool = False
    stuck: bool = False
    heartbeat_due: bool = False
    task: asyncio.Task[object] | None = None
    writing_since: float | None = None
    touched_at: float = field(default_factory=lambda: time.monotonic() - random.uniform(0, HEARTBEAT_S / 4))

    def leave(self, farewell: bytes) -> None:
        if self.farewell is None:
            self.farewell = farewell
            self.more.set()

    def hang_up(self) -> None:
        self.gone = True
        self.more.set()

    def look_after(self, now: float) -> bool:
        """Send a heartbeat where nothing was sent for a while; end one that takes nothing. False: it never began."""
        if self.task is None:
            return now - self.touched_at < UNBEGUN_S
        if self.writing_since is not None:
            if now - self.writing_since > STUCK_S and not self.stuck:
                self.stuck = True
                self.task.cancel()
        elif now - self.touched_at > HEARTBEAT_S:
            self.heartbeat_due = True
            self.more.set()
        return True

"""Whether rings still reach this process. A consumer that came through an outage of the broker may go on without ever
asking for another message: it lives, its turns are safe, and it never hears of new ones. It is then started again.

Deaf is: rings lie in a queue of ours, somebody is free to answer one, and the consumer took none from the broker at
`LOOKS` looks in a row. A broker that is away makes nobody deaf; nor does a crowd: with every slot taken, be it by who
stands in line for a claim, the consumer takes as many more as there are slots and then none, as it should.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import redis
import structlog

LOOK_EVERY_S = 2.0
LOOKS = 4
log = structlog.get_logger("hearing")


class Hearing:
    """`heard` at each ring that the consumer takes, be it too old to be answered: counted there, not where somebody
    answers, of whom all may be at work. `on_deaf` is called at most once, from a thread of this class."""

    def __init__(
        self,
        client: redis.Redis,
        queues: Sequence[str],
        may_hear: Callable[[], bool],
        on_deaf: Callable[[], None],
    ) -> None:
        self._client: Any = client  # untyped in redis-py
        self._queues = tuple(queues)
        self._may_hear = may_hear
        self._on_deaf = on_deaf
        self.rings = 0
        self._seen = 0
        self._silent = 0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="hearing", daemon=True)
        self.deaf = False

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()

    def heard(self, **_: object) -> None:
        self.rings += 1

    def look(self) -> None:
        """One look; so many in a row that find rings which nobody hears make it deaf."""
        unheard = self.rings == self._seen and self._may_hear() and self._waiting() > 0
        self._seen = self.rings
        self._silent = self._silent + 1 if unheard else 0
        if self._silent >= LOOKS and not self.deaf:
            self.deaf = True
            log.error("worker.deaf", queues=self._queues)
            self._on_deaf()

    def _waiting(self) -> int:
        try:
            return sum(int(self._client.llen(queue)) for queue in self._queues)
        except redis.RedisError:
            return 0

    def _watch(self) -> None:
        while not self._stopping.wait(LOOK_EVERY_S) and not self.deaf:
            self.look()

"""Whether rings still reach this process. A consumer that came through an outage of the broker may go on without ever
asking for another message: it lives, its turns are safe, and it never hears of new ones. It is then started again.

Deaf is: rings lie in a queue of ours, a thread is free to answer one, and none was heard at `LOOKS` looks in a row, or
`LOOKS_AT_WORK` while turns run. A broker that is away makes nobody deaf, and neither does work without end: each ring
that is answered keeps its thread until no turn is left to claim, and no other one is heard while all are kept.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

import redis
import structlog

LOOK_EVERY_S = 2.0
LOOKS = 4
LOOKS_AT_WORK = 30
"""While turns run, which look for the next one themselves: a machine without CPU to spare has been seen to leave rings
unheard for eight seconds, and to end a worker costs more there than to wait."""
log = structlog.get_logger("hearing")


class Hearing:
    """`answering` around what answers a ring, in one of `threads`. `on_deaf` is called at most once, from a thread of
    this class."""

    def __init__(
        self,
        client: redis.Redis,
        queues: Sequence[str],
        threads: int,
        may_hear: Callable[[], bool],
        on_deaf: Callable[[], None],
        at_work: Callable[[], bool],
    ) -> None:
        self._client: Any = client  # untyped in redis-py
        self._queues = tuple(queues)
        self._threads = threads
        self._answering = 0
        self._lock = threading.Lock()
        self._may_hear = may_hear
        self._on_deaf = on_deaf
        self._at_work = at_work
        self._rings = 0
        self._seen = 0
        self._silent = 0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="hearing", daemon=True)
        self.deaf = False

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()

    @contextmanager
    def answering(self) -> Generator[None]:
        with self._lock:
            self._rings += 1
            self._answering += 1
        try:
            yield
        finally:
            with self._lock:
                self._answering -= 1

    def look(self) -> None:
        """One look; so many in a row that find rings which nobody hears make it deaf."""
        free = self._answering < self._threads and self._may_hear()
        unheard = self._rings == self._seen and free and self._waiting() > 0
        self._seen = self._rings
        self._silent = self._silent + 1 if unheard else 0
        enough = LOOKS_AT_WORK if self._at_work() else LOOKS
        if self._silent >= enough and not self.deaf:
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

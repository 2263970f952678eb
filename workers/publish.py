"""Events and deltas on their way to the stream: one flusher thread a process, a pipeline every 30 ms (hot-path.md).

Publishing never waits and never raises into a turn. A worker whose lease is over adds nothing: checked here before each
flush, and again by the stream's own fence. What cannot be sent is dropped: the reader sees the gap in `n` and takes a
snapshot.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, cast
from uuid import UUID

import redis
import structlog

from shared import stream
from shared.stream import Aside, Event
from shared.values import EventKind

FLUSH_S = 0.03
MOST_WAITING = 5_000
_JOINED = frozenset({EventKind.TEXT_DELTA, EventKind.REASONING_DELTA})
log = structlog.get_logger("publish")
Key = tuple[UUID, int]


class Publisher:
    """`may_act` says whether this process still has its lease."""

    def __init__(self, client: redis.Redis, may_act: Callable[[], bool]) -> None:
        self._client = client
        self._may_act = may_act
        self._lock = threading.Lock()
        self._sending = threading.Lock()
        self._waiting: dict[Key, list[Event]] = {}
        self._counted: dict[Key, int] = {}
        self._asides: list[Aside] = []
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._append = client.register_script(stream.APPEND)
        self._tell = client.register_script(stream.TELL)
        self.dropped = 0
        self._thread = threading.Thread(target=self._run, name="publish", daemon=True)
        self._thread.start()

    def put(self, turn: UUID, fence: int, step: int, kind: EventKind, data: dict[str, Any]) -> None:
        """Queue one event. Neighbouring deltas of a step are joined, so a reader gets 30 ms of text at a time."""
        with self._lock:
            waiting = self._waiting.setdefault((turn, fence), [])
            last = waiting[-1] if waiting else None
            if last is not None and kind in _JOINED and last.kind is kind and last.step == step:
                last.data["text"] += data["text"]
                return
            n = self._counted.get((turn, fence), 0) + 1
            self._counted[turn, fence] = n
            if len(waiting) >= MOST_WAITING:
                self.dropped += 1
                return
            waiting.append(Event(step, fence, n, kind, {"step": step, "fence": fence, **data}))
        if not self._wake.is_set():
            self._wake.set()

    def tell(self, aside: Aside) -> None:
        """Queue what is told on the stream of a turn that somebody else holds."""
        with self._lock:
            if len(self._asides) >= MOST_WAITING:
                self.dropped += 1
                return
            self._asides.append(aside)
        self._wake.set()

    def forget(self, turn: UUID, fence: int) -> None:
        """The turn is no longer this worker's: its counter is not needed once what waits has gone out."""
        with self._lock:
            self._counted.pop((turn, fence), None)

    def flush(self) -> None:
        """Send what waits, now; whoever comes back from it knows that all before it was sent or dropped. One at a time:
        of two at once the later events could stand first, and a reader drops what comes behind them. Failing is
        counted, not raised."""
        with self._sending:
            self._flush()

    def _flush(self) -> None:
        with self._lock:
            batch, self._waiting = self._waiting, {}
            asides, self._asides = self._asides, []
        if not batch and not asides:
            return
        count = len(asides) + sum(map(len, batch.values()))
        if not self._may_act():
            self.dropped += count
            return
        try:
            pipe: Any = cast("Any", self._client).pipeline(transaction=False)
            for aside in asides:
                keys, args = stream.tell_args(aside)
                self._tell(keys=keys, args=args, client=pipe)
            for (turn, _), events in batch.items():
                keys, args = stream.append_args(turn, events)
                self._append(keys=keys, args=args, client=pipe)
            pipe.execute()
        except redis.RedisError as error:
            self.dropped += count
            log.warning("publish.dropped", turns=len(batch), error=type(error).__name__)

    def _run(self) -> None:
        while not self._stop.is_set():
            self._wake.wait(1.0)
            self._stop.wait(FLUSH_S)
            self._wake.clear()
            self.flush()

    def close(self) -> None:
        self._stop.set()
        self._wake.set()
        self._thread.join(2)
        self.flush()

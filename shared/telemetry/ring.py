"""Events on their way to those who count them. To emit takes microseconds, waits for nobody and never raises; where
more comes than is taken, the oldest is dropped and counted; whoever takes slowly, or fails, is alone with that.

Numbers and ring are both one step of the interpreter, so `emit` needs no lock that another thread could hold.
"""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Sequence
from typing import Protocol

import structlog

from shared.telemetry.events import Event

SIZE = 8_192
_EVERY_S = 0.25
_AT_ONCE = 512
_END_S = 1.0
_log = structlog.stdlib.get_logger(__name__)


class Subscriber(Protocol):
    """Called from a thread of its own, one call at a time."""

    @property
    def name(self) -> str: ...

    def take(self, events: Sequence[Event]) -> None:
        """Count them. What it raises is counted as its failure, and its next call comes all the same."""
        ...


class Feed:
    """One subscriber's ring and thread."""

    def __init__(self, subscriber: Subscriber, size: int = SIZE) -> None:
        self._subscriber = subscriber
        self._ring: deque[tuple[int, Event]] = deque(maxlen=size)
        self._numbers = itertools.count()
        self._highest = -1
        self._taken = 0
        self.failures = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"telemetry-{subscriber.name}", daemon=True)
        self._thread.start()

    def put(self, event: Event) -> None:
        self._ring.append((next(self._numbers), event))

    @property
    def dropped(self) -> int:
        """Of all that came before the last one taken."""
        return max(0, self._highest + 1 - self._taken)

    def close(self) -> None:
        """What waits is handed over once more, unless the subscriber hangs."""
        self._stop.set()
        self._thread.join(_END_S)

    def _run(self) -> None:
        while not self._stop.wait(_EVERY_S):
            self._drain()
        self._drain()

    def _drain(self) -> None:
        while batch := self._some():
            try:
                self._subscriber.take(batch)
            except Exception as error:  # noqa: BLE001 - a subscriber's own fault must cost nobody else a figure
                self.failures += 1
                _log.warning("telemetry.failed", subscriber=self._subscriber.name, error=type(error).__name__)

    def _some(self) -> list[Event]:
        found: list[Event] = []
        while len(found) < _AT_ONCE:
            try:
                number, event = self._ring.popleft()
            except IndexError:
                break
            self._highest = max(self._highest, number)
            self._taken += 1
            found.append(event)
        return found


class Telemetry:
    """Of one process. Without subscribers nothing is kept."""

    def __init__(self, subscribers: Sequence[Subscriber] = (), size: int = SIZE) -> None:
        self._feeds = tuple(Feed(subscriber, size) for subscriber in subscribers)

    def emit(self, event: Event) -> None:
        """From any thread, at any moment."""
        for feed in self._feeds:
            feed.put(event)

    @property
    def dropped(self) -> int:
        return sum(feed.dropped for feed in self._feeds)

    @property
    def failures(self) -> int:
        return sum(feed.failures for feed in self._feeds)

    def close(self) -> None:
        for feed in self._feeds:
            feed.close()

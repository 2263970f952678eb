"""What every chore is given: settings, database, doorbell, counters, and the event that says stop."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

import redis
import structlog

from shared import stream, telling
from shared.doorbell import Doorbell
from shared.settings import Settings
from shared.store.pool import Database
from shared.values import EventKind

log = structlog.get_logger("scheduler")


@dataclass(frozen=True, slots=True)
class Room:
    """`counters` only rise; `failing` is how many rows of a batch failed in its last pass (see scheduler.rows);
    `written` are counters as they stand in the database under `boot`."""

    settings: Settings
    database: Database
    doorbell: Doorbell
    redis: redis.Redis
    stop: threading.Event = field(default_factory=threading.Event)
    counters: Counter[str] = field(default_factory=Counter[str])
    failing: Counter[str] = field(default_factory=Counter[str])
    written: dict[str, int] = field(default_factory=lambda: defaultdict[str, int](int))
    boot: UUID = field(default_factory=uuid4)

    def count(self, event: str, by: int = 1, **ids: Any) -> None:
        """Count an event and log it with its ids."""
        self.counters[event] += by
        log.info(event, by=by, **ids)

    def tell_child(self, turn: UUID) -> None:
        """After a commit that ended a turn: where it is a child, who watches its parent learns of it."""
        telling.parent_of(self.database.read, turn, self._aside)

    def publish(self, turn: object, step: int, fence: int, *events: tuple[EventKind, dict[str, object]]) -> None:
        """The first events of a fence that this process raised. A hint to viewers: Postgres says the same."""
        made = [stream.Event(step, fence, n, kind, data) for n, (kind, data) in enumerate(events, 1)]
        self._say(turn, events[-1][0], stream.APPEND, *stream.append_args(turn, made))

    def _aside(self, aside: stream.Aside) -> None:
        self._say(aside.turn, aside.kind, stream.TELL, *stream.tell_args(aside))

    def _say(self, turn: object, kind: EventKind, script: str, keys: list[str], args: list[str | bytes | int]) -> None:
        given: list[Any] = [*keys, *args]
        try:
            self.redis.eval(script, len(keys), *given)
        except redis.RedisError as error:
            log.info("publish.missed", turn=str(turn), kind=kind, error=type(error).__name__)

"""How a running turn hears of a cancel or of a person's words: a Redis message as a hint, and one question a second to
Postgres, which suffices.

A cancel that is hinted at is one. Words that are hinted at may have been read by the call that is out, so the hint only
has the question asked at once: a call is cut where it was out already when words stood unread.

The same question tells which turns were taken away: they stop at once and write nothing more. And it tells which turns
stand as ours though nobody here has them in hand, after a write that could not be made: they are given to the sweep,
for nobody takes a turn from a holder that lives.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any
from uuid import UUID

import redis
import structlog
from psycopg.rows import DictRow

from shared.errors import NightshiftError
from shared.life import Life
from shared.store.pool import Connection, Database
from shared.store.statements import every, holder, one, step
from shared.stream import HINTS
from workers.held import Held, Interrupt

ASK_S = 1.0
GATHER_S = 0.05
"""How long a hint waits for more of its kind: what five people say at once cuts one call."""
log = structlog.get_logger("hints")


class Turns:
    """The turns that this process holds, by id. One lock, no waiting under it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[UUID, Held] = {}
        self._claims: set[UUID] = set()

    def begin(self, claim: UUID) -> None:
        """A claim of this name is about to be made. It is known until `end`, whatever becomes of it."""
        with self._lock:
            self._claims.add(claim)

    def end(self, claim: UUID) -> None:
        with self._lock:
            self._claims.discard(claim)

    def knows(self, claim: UUID) -> bool:
        with self._lock:
            return claim in self._claims

    def add(self, held: Held) -> None:
        with self._lock:
            self._held[held.claim.turn] = held

    def remove(self, held: Held) -> None:
        with self._lock:
            if self._held.get(held.claim.turn) is held:
                del self._held[held.claim.turn]

    def get(self, turn: UUID) -> Held | None:
        with self._lock:
            return self._held.get(turn)

    def all(self) -> list[Held]:
        with self._lock:
            return list(self._held.values())

    def __len__(self) -> int:
        return len(self._held)


class Hints:
    """Two threads: one asks Postgres, one listens to Redis. Either may fail for as long as it likes."""

    def __init__(self, turns: Turns, database: Database, life: Life, client: redis.Redis) -> None:
        self._turns, self._database, self._life, self._client = turns, database, life, client
        self._stop = threading.Event()
        self._ask_now = threading.Event()
        self._threads = [
            threading.Thread(target=self._forever, args=(work, pause), name=f"hints-{name}", daemon=True)
            for name, work, pause in (("ask", self._ask, self._until_asked), ("listen", self._listen, self._a_while))
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._ask_now.set()

    def _a_while(self) -> None:
        self._stop.wait(ASK_S)

    def _until_asked(self) -> None:
        """A hint that comes while the question is under way has it asked once more: its answer may be older."""
        if self._ask_now.wait(ASK_S):
            self._stop.wait(GATHER_S)
        self._ask_now.clear()

    def _forever(self, work: Callable[[], None], pause: Callable[[], None]) -> None:
        while not self._stop.is_set():
            pause()
            if self._stop.is_set():
                return
            try:
                work()
            except (NightshiftError, redis.RedisError, OSError) as error:
                log.warning("hints.away", error=type(error).__name__)

    def _ask(self) -> None:
        """A turn that was claimed after the question was asked is not in the answer and is none of its business."""
        asked = time.monotonic()
        before = [(held, held.call_in_flight()) for held in self._turns.all() if held.claimed_at < asked]
        rows = self._database.write(
            lambda c: every(c, holder.MY_TURNS, {"holder": self._life.boot_id}), recover=None, patience_s=5
        )
        answer = {row["id"]: row for row in rows}
        for held, call in before:
            row = answer.get(held.claim.turn)
            if row is None:
                if self._turns.get(held.claim.turn) is held:
                    held.interrupt(Interrupt.LOST)
                continue
            held.stopped_tools = row["stopped_tools"] or {}
            if row["cancelled"]:
                held.interrupt(Interrupt.CANCEL)
            elif row["stopped"]:
                held.interrupt(Interrupt.YIELD)
            if row["steered"]:
                held.steer(call)
        for row in rows:
            if not self._turns.knows(row["claim"]):
                self._disown(row)

    def _disown(self, row: DictRow) -> None:
        """Compared with the claim's name: a turn that ended or was claimed again since the question is left alone."""

        def work(connection: Connection) -> bool:
            with connection.transaction():
                one(connection, step.HOLD, {"session": row["session"]})
                return one(connection, holder.DISOWN, {"turn": row["id"], "claim": row["claim"]}) is not None

        if self._database.write(work, recover=None, patience_s=5):
            log.warning("turn.disowned", turn=str(row["id"]), session=str(row["session"]))

    def _listen(self) -> None:
        client: Any = self._client  # redis-py's pubsub is untyped
        with client.pubsub(ignore_subscribe_messages=True) as channel:
            channel.subscribe(HINTS)
            while not self._stop.is_set():
                message: dict[str, Any] | None = channel.get_message(timeout=1.0)
                if message and isinstance(message.get("data"), bytes):
                    self._take(message["data"].decode("utf-8", "replace"))

    def _take(self, hint: str) -> None:
        kind, _, turn = hint.partition(":")
        try:
            held = self._turns.get(UUID(turn))
        except ValueError:
            return
        if held is not None and kind == "cancel":
            held.interrupt(Interrupt.CANCEL)
        elif held is not None and kind == "steer":
            self._ask_now.set()

"""What a worker writes, by hand: claims, committed steps, ends, and events under a fence."""

from __future__ import annotations

from typing import Any, cast
from uuid import UUID, uuid4

import psycopg
from psycopg.rows import DictRow, dict_row

from shared import stream
from shared.request import blocks
from shared.stream import Event
from shared.values import EventKind


class Hand:
    """One hand holds any number of turns; `fence` and `n` of each are kept here."""

    def __init__(self, database_url: str, redis_url: str) -> None:
        self._db = psycopg.Connection[DictRow].connect(database_url, autocommit=True, row_factory=dict_row)
        self.redis = stream.connect(redis_url)
        self._append = self.redis.register_script(stream.APPEND)
        self._tell = self.redis.register_script(stream.TELL)
        self._fence: dict[UUID, int] = {}
        self._n: dict[UUID, int] = {}
        self._step: dict[UUID, int] = {}

    def close(self) -> None:
        self._db.close()
        self.redis.close()

    # --- rows -------------------------------------------------------------------------------------------------------

    def _raise(self, session: UUID) -> int:
        return self._one("update sessions set fence = fence + 1 where id = %s returning fence", session)["fence"]

    def claim(self, turn: str) -> int:
        """The turn is running under a fresh holder; returns its fence."""
        id_ = UUID(turn)
        with self._db.transaction():
            row = self._one("select session, step from turns where id = %s for update", id_)
            fence = self._raise(row["session"])
            self._db.execute(
                "update turns set status = 'running', holder = %s, attempts = attempts + 1, fence = %s,"
                " started_at = coalesce(started_at, clock_now()) where id = %s",
                (uuid4(), fence, id_),
            )
        self._fence[id_], self._n[id_], self._step[id_] = fence, 0, row["step"]
        return fence

    def commit(self, turn: str, text: str) -> int:
        """One more committed step with that text; returns its number."""
        id_ = UUID(turn)
        step = self._step[id_] + 1
        with self._db.transaction():
            self._db.execute(
                "insert into messages (session, turn, step, ordinal, author, role, content, fence)"
                " select session, id, %s, 0, 'model', 'assistant', %s, %s from turns where id = %s",
                (step, blocks.join([blocks.text(text)]), self._fence[id_], id_),
            )
            self._db.execute("update turns set step = %s, steps = steps + 1 where id = %s", (step, id_))
        self._step[id_] = step
        return step

    def end(self, turn: str, status: str = "done", answer: str | None = None, code: str | None = None) -> None:
        id_ = UUID(turn)
        with self._db.transaction():
            row = self._one("select session from turns where id = %s", id_)
            fence = self._raise(row["session"])
            self._db.execute(
                "update turns set status = %s, holder = null, finished_at = clock_now(), answer = %s, error_code = %s,"
                " error_text = %s, fence = %s where id = %s",
                (status, answer, code, code, fence, id_),
            )

    def park(self, turn: str, reason: str) -> None:
        """It sleeps, as a holder that gives its slot back leaves it."""
        id_ = UUID(turn)
        with self._db.transaction():
            row = self._one("select session from turns where id = %s", id_)
            fence = self._raise(row["session"])
            self._db.execute(
                "update turns set status = 'parked', holder = null, parked_on = %s, parked_at = clock_now(),"
                " wake_at = clock_now() + interval '1 day', fence = %s where id = %s",
                (reason, fence, id_),
            )

    def requeue(self, turn: str) -> None:
        """Taken away from a holder that is gone."""
        id_ = UUID(turn)
        with self._db.transaction():
            row = self._one("select session from turns where id = %s", id_)
            fence = self._raise(row["session"])
            self._db.execute(
                "update turns set status = 'queued', holder = null, fence = %s, parked_on = null, parked_at = null,"
                " wake_at = null where id = %s",
                (fence, id_),
            )

    def _one(self, query: str, *params: Any) -> DictRow:
        row = self._db.execute(query.encode(), params).fetchone()
        assert row is not None, query
        return row

    # --- events -----------------------------------------------------------------------------------------------------

    def say(self, turn: str, kind: EventKind, *, lost: bool = False, fence: int | None = None, **data: Any) -> str:
        """Append an event, or count it and lose it. Returns its id."""
        id_ = UUID(turn)
        self._n[id_] += 1
        step = data.pop("step", self._step[id_] + 1)
        event = Event(step, self._fence[id_] if fence is None else fence, self._n[id_], kind, data)
        if not lost:
            keys, args = stream.append_args(id_, [event])
            self._append(keys=keys, args=args)
        return event.id

    def aside(self, turn: str, kind: EventKind, **data: Any) -> None:
        """What somebody else tells on its stream."""
        id_ = UUID(turn)
        keys, args = stream.tell_args(stream.Aside(id_, self._step[id_] + 1, self._fence[id_] - 1, kind, data))
        self._tell(keys=keys, args=args)

    def delta(self, turn: str, text: str, *, lost: bool = False) -> str:
        return self.say(turn, EventKind.TEXT_DELTA, text=text, lost=lost)

    def step(self, turn: str, text: str, *, pieces: int = 3) -> int:
        """Stream a step in pieces, commit it, and tell of its end."""
        self.say(turn, EventKind.STEP_STARTED)
        size = max(1, -(-len(text) // pieces))
        for at in range(0, len(text), size):
            self.delta(turn, text[at : at + size])
        step = self.commit(turn, text)
        self.say(turn, EventKind.STEP_FINISHED, step=step, text=text)
        return step

    def finish(self, turn: str, answer: str) -> str:
        self.end(turn, "done", answer)
        return self.say(
            turn, EventKind.TURN_FINISHED, status="done", answer=answer, error=None, step=self._step[UUID(turn)]
        )

    def hints(self) -> Any:
        """What is told to running workers from now on."""
        hints = cast(Any, self.redis).pubsub()
        hints.subscribe(stream.HINTS)
        return hints

    def flush(self) -> None:
        cast(Any, self.redis).flushall()

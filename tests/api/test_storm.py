"""Random storms over the whole reader: lost events, flushes, takeovers, restarts, reconnects; the fold is right."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, cast
from uuid import uuid4

import pytest

from api.events.feed import Feed
from api.events.timeline import Committed
from api.events.truth import Seen, Standing, Truth
from api.events.viewer import Viewer
from api.wire.shown import Tokens, Turn
from shared.stream import Event
from shared.values import EventKind, TurnStatus
from tests.api.watching import Fold, parse

READERS, CLIENTS, STEPS = 2, 4, 5


class Rows:
    """What Postgres would say. Stands where `Truth` stands."""

    def __init__(self) -> None:
        self.committed: dict[int, Committed] = {}
        self.status = TurnStatus.RUNNING
        self.fence = 1
        self.answer: str | None = None

    async def turn(self, _: object) -> Turn:
        await asyncio.sleep(0)
        now = datetime.now(UTC)
        return Turn(
            id=uuid4(), session_id=uuid4(), status=self.status, turn_class="interactive", requested_by="anna",
            parked_on=None, waiting=None, answer=self.answer, error=None, steps_used=0, steps_refunded=0, max_steps=90,
            cost_usd=None, children_cost_usd=None, parent_id=None, cap_usd=None, tokens=Tokens(), attempts=1,
            takeovers=0, cancel_requested_at=None, created_at=now, started_at=now, finished_at=None, wake_at=None,
            deadline_at=None,
        )  # fmt: skip

    async def steps(self, _: object) -> dict[int, Committed]:
        await asyncio.sleep(0)
        return dict(self.committed)

    def seen(self) -> Seen:
        return Seen(self.status, self.fence, frozenset(self.committed))

    def standing(self) -> Standing:
        return Standing(self.status, max(self.committed, default=0), self.fence)


class Client:
    """Reads event by event, hangs up when told, comes back to any reader with its last id."""

    def __init__(self, strict: bool) -> None:
        self.fold = Fold()
        self.feed: Feed | None = None
        self.place = 0
        self.first: list[dict[str, Any]] = []
        self.viewer = Viewer(b"")
        self.strict = strict
        self.high = (-1, 0)

    async def connect(self, feed: Feed, rows: Rows) -> None:
        first, self.place = await feed.join(self.viewer, self.fold.last_id, rows.seen())
        self.first = list(parse(first.decode().split("\n")))
        self.feed = feed

    def hang_up(self) -> None:
        if self.feed is not None:
            self.feed.viewers.discard(self.viewer)
        self.feed = None

    def read(self, most: int) -> None:
        for _ in range(most):
            if self.feed is None or self.fold.end is not None:
                return
            if self.first:
                self.take(self.first.pop(0))
                continue
            if self.place < self.feed.log.base:
                self.hang_up()
                return
            data, after = self.feed.log.read(self.place, 1)
            if after == self.place:
                return
            self.place = after
            for event in parse(data.decode().split("\n")):
                self.take(event)

    def take(self, event: dict[str, Any]) -> None:
        """A strict client drops repeats and what is below the highest fence, as the contract lets it."""
        _, fence, n = map(int, event["id"].split("."))
        late = fence < self.high[0] or (fence == self.high[0] and n <= self.high[1] and event["event"] != "snapshot")
        if self.strict and late:
            raise AssertionError(f"{event['event']} {event['id']} is late or repeated after {self.high}")
        self.high = (fence, n)
        self.fold.take(event)


class Storm:
    """One turn, its writers, its readers, their clients."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.rows = Rows()
        self.stream: list[Event] = []
        self.feeds: list[tuple[Feed, int]] = []
        self.clients = [Client(strict=n % 2 == 0) for n in range(CLIENTS)]
        self.fence, self.n, self.partial = 1, 0, ""
        self.loss = self.dice.choice([0.0, 0.0, 0.05, 0.3])
        self.stale: list[Event] = []

    async def run(self) -> dict[int, str]:
        self.feeds = [(self._feed(), 0) for _ in range(READERS)]
        try:
            while len(self.rows.committed) < STEPS:
                await self._act()
            await self._end()
        finally:
            for feed, _ in self.feeds:
                feed.close()
        return {step: one.text for step, one in self.rows.committed.items() if one.text}

    def _feed(self) -> Feed:
        feed = Feed(uuid4(), cast("Truth", self.rows), lambda _: None)
        feed.push(list(self.stream))
        return feed

    async def _act(self) -> None:
        acts: list[tuple[int, Callable[[], object]]] = [
            (30, self._delta), (6, self._commit), (3, self._take_over), (1, self._flush), (2, self._restart_reader),
            (2, self._zombie), (3, self._restart_step), (20, self._clients_read), (8, self._come_and_go),
            (4, self._poll),
        ]  # fmt: skip
        act = self.dice.choices([one for _, one in acts], [weight for weight, _ in acts])[0]
        done = act()
        if asyncio.iscoroutine(done):
            await done
        for _ in range(self.dice.randrange(6)):
            await asyncio.sleep(0)

    # --- the writer -------------------------------------------------------------------------------------------------

    @property
    def _step(self) -> int:
        return max(self.rows.committed, default=0) + 1

    def _say(self, kind: EventKind, step: int | None = None, **data: Any) -> None:
        self.n += 1
        step = self._step if step is None else step
        event = Event(step, self.fence, self.n, kind, {"step": step, **data})
        if self.dice.random() >= self.loss:
            self._append(event)

    def _append(self, event: Event) -> None:
        self.stream.append(event)
        for feed, _ in self.feeds:
            feed.push([event])

    def _delta(self) -> None:
        text = f"{self._step}{self.dice.choice('abcdefgh')} "
        self.partial += text
        self._say(EventKind.TEXT_DELTA, text=text)

    def _commit(self) -> None:
        step, text = self._step, self.partial
        self.rows.committed[step] = Committed(text, self.fence)
        self.partial = ""
        if self.dice.random() < 0.15:
            return self._take_over()  # died before it told anyone
        self._say(EventKind.STEP_FINISHED, step, text=text)
        return self._say(EventKind.TOOL_CALLED, step, tool="x")

    def _take_over(self) -> None:
        self.stale.append(
            Event(self._step, self.fence, self.n + 1, EventKind.TEXT_DELTA, {"step": self._step, "text": "STALE"})
        )
        self.fence += self.dice.choice([1, 2])
        self.rows.fence = self.fence
        self.n, self.partial = 0, ""
        self._say(EventKind.TURN_STARTED, attempt=2)

    def _restart_step(self) -> None:
        self.partial = ""
        self._say(EventKind.STEP_RESTARTED)

    def _zombie(self) -> None:
        """Only after a flush does the stream take what a late worker writes; its own fence guards it otherwise."""
        if self.stale and all(event.fence <= self.stale[-1].fence for event in self.stream):
            self._append(self.stale[-1])

    # --- the world --------------------------------------------------------------------------------------------------

    def _flush(self) -> None:
        self.stream.clear()

    async def _restart_reader(self) -> None:
        at = self.dice.randrange(READERS)
        for client in self.clients:
            if client.feed is self.feeds[at][0]:
                client.hang_up()
        self.feeds[at][0].close()
        self.feeds[at] = (self._feed(), 0)

    def _clients_read(self) -> None:
        for client in self.clients:
            client.read(self.dice.randrange(4))

    async def _come_and_go(self) -> None:
        client = self.dice.choice(self.clients)
        if client.feed is not None:
            client.hang_up()
        else:
            await client.connect(self.dice.choice(self.feeds)[0], self.rows)

    def _poll(self) -> None:
        for feed, _ in self.feeds:
            feed.stands(self.rows.standing())

    async def _end(self) -> None:
        self.rows.status = TurnStatus.DONE
        self.rows.answer = answer = self.rows.committed[max(self.rows.committed)].text
        self.rows.fence = self.fence + 1
        self._say(EventKind.TURN_FINISHED, max(self.rows.committed), status="done", answer=answer, error=None)
        for _ in range(400):
            for client in self.clients:
                if client.feed is None and client.fold.end is None:
                    await client.connect(self.dice.choice(self.feeds)[0], self.rows)
                client.read(self.dice.randrange(5))
            if all(client.fold.end is not None for client in self.clients):
                return
            self._poll()
            await asyncio.sleep(0)


@pytest.mark.parametrize("block", range(20))
def test_after_any_storm_the_text_of_every_client_is_what_was_committed(
    block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("api.events.feed.CATCH_UP_S", 0.0)

    async def storms() -> None:
        for seed in range(block * 50, block * 50 + 50):
            storm = Storm(seed)
            with contextlib.suppress(asyncio.CancelledError):
                committed = await storm.run()
                for number, client in enumerate(storm.clients):
                    assert client.fold.end is not None, f"seed {seed}, client {number}: no end"
                    texts = {step: text for step, text in client.fold.texts.items() if text}
                    assert texts == committed, f"seed {seed}, client {number}"

    asyncio.run(storms())

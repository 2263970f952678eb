"""All watched turns of this process: one feed a turn however many watch it, one read of Postgres a second for all."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable
from uuid import UUID

import structlog

from api.asking import Asking
from api.events import frames
from api.events.feed import Feed
from api.events.source import Source
from api.events.truth import Seen, Truth
from api.events.viewer import Viewer
from shared.errors import StoreUnavailable

MOST_VIEWERS = 5_000
POLL_S = 1.0
NUDGED_POLL_S = 0.25
LINGER_S = 15.0
_AT_ONCE = 5
log = structlog.get_logger("events")


class Hub:
    """Opened and closed with the app, on its loop. `revoked` hears of tokens that are good no more."""

    def __init__(self, asking: Asking, redis_url: str, revoked: Callable[[set[bytes]], None]) -> None:
        self.truth = Truth(asking)
        self.viewers = 0
        self.closing = False
        self._redis_url = redis_url
        self._revoked = revoked
        self._feeds: dict[UUID, Feed] = {}
        self._opening: dict[UUID, asyncio.Task[Feed]] = {}
        self._woken: dict[Feed, None] = {}
        self._to_wake = asyncio.Event()
        self._nudged = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._source: Source | None = None

    def open(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._source = Source(self._redis_url, lambda: self.viewers)
        self._source.start()
        self._tasks = [asyncio.create_task(self._wake_all()), asyncio.create_task(self._poll_all())]

    def send_away(self) -> None:
        """Ask every viewer to go: this server is stopping."""
        self.closing = True
        for feed in self._feeds.values():
            for viewer in feed.viewers:
                viewer.leave(frames.LEAVING)

    async def close(self) -> None:
        self.send_away()
        for task in self._tasks:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        for feed in self._feeds.values():
            feed.close()
        if self._source is not None:
            await self._source.close()

    def nudge(self) -> None:
        """From any thread: a row was changed that no worker will tell of; look soon."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._nudged.set)

    async def join(self, turn: UUID, viewer: Viewer, last_id: str | None, seen: Seen) -> tuple[Feed, bytes, int]:
        """The feed, what to send first, the place to go on from. Ends with `leave`. Raises StoreUnavailable."""
        if self.viewers >= MOST_VIEWERS or self.closing:
            raise StoreUnavailable("this server takes no more viewers: try again shortly", code="too_many_viewers")
        feed = await self._feed(turn)
        feed.arriving += 1
        try:
            first, place = await feed.join(viewer, last_id, seen)
        finally:
            feed.arriving -= 1
        self.viewers += 1
        if self.closing:
            viewer.leave(frames.LEAVING)
        return feed, first, place

    def leave(self, feed: Feed, viewer: Viewer) -> None:
        """The viewer is gone; twice is once."""
        if viewer in feed.viewers:
            feed.viewers.discard(viewer)
            self.viewers -= 1
            feed.idle_since = asyncio.get_running_loop().time()

    async def _feed(self, turn: UUID) -> Feed:
        feed = self._feeds.get(turn)
        if feed is not None:
            return feed
        task = self._opening.get(turn)
        if task is None:
            task = asyncio.create_task(self._open_feed(turn))
            self._opening[turn] = task
            task.add_done_callback(lambda _: self._opening.pop(turn, None))
        return await asyncio.shield(task)

    async def _open_feed(self, turn: UUID) -> Feed:
        assert self._source is not None
        feed = Feed(turn, self.truth, self._wake)
        await self._source.watch(turn, feed.push)
        self._feeds[turn] = feed
        return feed

    # --- waking viewers ---------------------------------------------------------------------------------------------

    def _wake(self, feed: Feed) -> None:
        self._woken[feed] = None
        self._to_wake.set()

    async def _wake_all(self) -> None:
        """Wake viewers a few at a time, so that a thousand of them do not hold up a health check."""
        while True:
            await self._to_wake.wait()
            self._to_wake.clear()
            woken, self._woken = self._woken, {}
            viewers = [viewer for feed in woken for viewer in feed.viewers]
            for at in range(0, len(viewers), _AT_ONCE):
                for viewer in viewers[at : at + _AT_ONCE]:
                    viewer.more.set()
                await asyncio.sleep(0)

    # --- asking Postgres --------------------------------------------------------------------------------------------

    async def _poll_all(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(POLL_S):
                    await self._nudged.wait()
                self._nudged.clear()
                await asyncio.sleep(NUDGED_POLL_S)
            self._tidy()
            if not self._feeds:
                continue
            try:
                await self._poll()
            except StoreUnavailable:
                continue  # streams stay up without Postgres

    async def _poll(self) -> None:
        watched = [feed for feed in self._feeds.values() if not feed.over]
        if watched:
            standing = await self.truth.standing(feed.turn for feed in watched)
            for feed in watched:
                feed.stands(standing.get(feed.turn))
        viewers = [viewer for feed in self._feeds.values() for viewer in feed.viewers]
        digests = {viewer.digest for viewer in viewers}
        if digests:
            live = await self.truth.live_tokens(digests)
            if digests - live:
                self._revoked(digests - live)
                _send_away(viewers, digests - live)

    def _tidy(self) -> None:
        now, clock = asyncio.get_running_loop().time(), time.monotonic()
        for turn, feed in list(self._feeds.items()):
            for viewer in [one for one in feed.viewers if not one.look_after(clock)]:
                self.leave(feed, viewer)  # it hung up before its answer began
            if not feed.viewers and not feed.arriving and now - feed.idle_since > LINGER_S:
                del self._feeds[turn]
                feed.close()
                if self._source is not None:
                    self._source.forget(turn)


def _send_away(viewers: Iterable[Viewer], revoked: set[bytes]) -> None:
    for viewer in viewers:
        if viewer.digest in revoked:
            viewer.leave(frames.REVOKED)

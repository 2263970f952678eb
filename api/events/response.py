"""The HTTP answer of a watched turn: bytes from the log, heartbeats, and an end after the last event."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator
from uuid import UUID

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from api.events import frames
from api.events.feed import Feed
from api.events.hub import Hub
from api.events.truth import Seen
from api.events.viewer import Viewer


async def answer(hub: Hub, turn: UUID, digest: bytes, last_id: str | None, seen: Seen) -> Response:
    """Joins first, so that a refusal is still a problem and not a broken stream. Raises StoreUnavailable."""
    viewer = Viewer(digest)
    feed, first, place = await hub.join(turn, viewer, last_id, seen)
    if feed.over and not first and place == feed.log.end:
        hub.leave(feed, viewer)
        return Response(status_code=204)  # it has everything: an EventSource stops at this, and would come again at 200
    return _EventStream(hub, viewer, feed, first, place)


class _EventStream(Response):
    """Starlette's own streaming response cannot give up on a client that takes nothing."""

    def __init__(self, hub: Hub, viewer: Viewer, feed: Feed, first: bytes, place: int) -> None:
        self.status_code = 200
        self.background = None
        self.body = b""
        self.media_type = "text/event-stream"
        self.init_headers({"cache-control": "no-store", "x-accel-buffering": "no"})
        self._hub, self._viewer, self._feed = hub, viewer, feed
        self._chunks = _chunks(viewer, feed, first, place)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - ASGI's signature
        viewer = self._viewer
        viewer.task = asyncio.current_task()
        listening = asyncio.create_task(_listen(receive, viewer))
        try:
            headers = [pair for pair in self.raw_headers if pair[0] != b"content-length"]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            async for chunk in self._chunks:
                viewer.writing_since = viewer.touched_at = time.monotonic()
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
                viewer.writing_since = None
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except asyncio.CancelledError:
            if not viewer.stuck:  # else it took nothing: the server closes a connection whose answer did not end
                raise
        finally:
            listening.cancel()
            self._hub.leave(self._feed, viewer)


async def _listen(receive: Receive, viewer: Viewer) -> None:
    with contextlib.suppress(OSError):
        while (await receive())["type"] != "http.disconnect":
            pass
    viewer.hang_up()


async def _chunks(viewer: Viewer, feed: Feed, first: bytes, place: int) -> AsyncGenerator[bytes]:
    yield frames.OPENING + first
    while not viewer.gone:
        if viewer.farewell is not None:
            yield viewer.farewell
            return
        if place < feed.log.base:
            yield frames.TOO_SLOW
            return
        viewer.more.clear()
        data, place = feed.log.read(place)
        if data:
            yield data
        elif feed.over:
            return
        elif viewer.heartbeat_due:
            yield frames.HEARTBEAT
        else:
            await viewer.more.wait()
            continue
        viewer.heartbeat_due = False

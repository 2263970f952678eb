"""Reads the streams of all watched turns in Redis with one blocking XREAD, and survives whatever happens to Redis.

Nothing read here is the truth: what is missing shows as a gap in `n`, and the feed asks Postgres.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any, cast
from uuid import UUID

import redis.asyncio as aioredis
import structlog
from redis.exceptions import RedisError

from shared import stream
from shared.stream import Event

BLOCK_MS = 1000
CHUNK = 1000
_LEAST_PAUSE_S, _MOST_PAUSE_S, _PAUSE_A_VIEWER_S = 0.005, 0.25, 0.0002
_WAKE_TRIES = 20
log = structlog.get_logger("events")
Entries = list[tuple[bytes, list[tuple[bytes, dict[bytes, bytes]]]]]
Push = Callable[[list[Event]], None]


class Source:
    """`watch` begins with what the stream holds, then follows it until `forget`."""

    def __init__(self, url: str, viewers: Callable[[], int]) -> None:
        self._viewers = viewers
        self._reader = self._connect(url, timeout_s=3.0)
        self._other = self._connect(url, timeout_s=1.0)
        self._positions: dict[bytes, bytes] = {}
        self._pushes: dict[bytes, Push] = {}
        self._changed = 0
        self._noticed = 0
        self._any = asyncio.Event()
        self._reader_id: int | None = None
        self._task: asyncio.Task[None] | None = None
        self._waking: asyncio.Task[None] | None = None

    @staticmethod
    def _connect(url: str, *, timeout_s: float) -> aioredis.Redis:
        """A bounded pool that lets a crowd wait for its connections, instead of refusing it."""
        pool = aioredis.BlockingConnectionPool.from_url(  # pyright: ignore[reportUnknownMemberType] - redis-py
            url, max_connections=4, timeout=2, socket_timeout=timeout_s, socket_connect_timeout=1.0
        )
        return aioredis.Redis(connection_pool=pool)

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        for task in (self._task, self._waking):
            if task is not None:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
        for client in (self._reader, self._other):
            with contextlib.suppress(RedisError, OSError):
                await client.aclose()

    async def watch(self, turn: UUID, push: Push) -> None:
        """Give `push` what the stream holds, then what comes. Redis being away is no error: it may come back."""
        key = stream.key(turn).encode()
        position = b"0-0"
        try:
            async with asyncio.timeout(1.5):
                while True:
                    found = await self._read(self._other, {key: position}, None)
                    if not found:
                        break
                    position = self._hand_out(found, {key: push})[key]
        except (RedisError, OSError, TimeoutError) as error:
            log.warning("events.history_missing", turn=str(turn), error=type(error).__name__)
        self._positions[key] = position
        self._pushes[key] = push
        self._change()

    def forget(self, turn: UUID) -> None:
        key = stream.key(turn).encode()
        self._positions.pop(key, None)
        self._pushes.pop(key, None)
        self._changed += 1

    def _change(self) -> None:
        """Let the reader take in a new key now: it may sit in a blocking read of the others."""
        self._changed += 1
        self._any.set()
        if self._waking is None or self._waking.done():
            self._waking = asyncio.create_task(self._unblock())

    async def _unblock(self) -> None:
        for _ in range(_WAKE_TRIES):  # the reader may be just about to block: then the first try finds nothing to wake
            if self._noticed == self._changed or self._reader_id is None:
                return
            try:
                await self._other.execute_command("CLIENT", "UNBLOCK", self._reader_id)  # pyright: ignore[reportUnknownMemberType] - redis-py
            except (RedisError, OSError):
                return
            await asyncio.sleep(0.01)

    async def _run(self) -> None:
        failures = 0
        while True:
            try:
                async with self._reader.client() as connection:
                    self._reader_id = int(await connection.client_id())  # pyright: ignore[reportUnknownMemberType] - redis-py
                    while True:
                        await self._round(connection)
                        failures = 0
            except (RedisError, OSError, TimeoutError) as error:
                failures += 1
                if failures == 1:
                    log.warning("events.stream_away", error=type(error).__name__)
                await asyncio.sleep(min(0.1 * failures, 1.0))
            finally:
                self._reader_id = None

    async def _round(self, connection: aioredis.Redis) -> None:
        if not self._positions:
            self._any.clear()
            await self._any.wait()
        self._noticed = self._changed
        found = await self._read(connection, dict(self._positions), BLOCK_MS)
        for key, position in self._hand_out(found, self._pushes).items():
            if key in self._positions:
                self._positions[key] = position
        # Reads are gathered while writing to all viewers takes longer than the next read would.
        await asyncio.sleep(min(_MOST_PAUSE_S, max(_LEAST_PAUSE_S, self._viewers() * _PAUSE_A_VIEWER_S)))

    @staticmethod
    async def _read(client: aioredis.Redis, positions: dict[bytes, bytes], block_ms: int | None) -> Entries:
        found = await client.xread(cast("dict[Any, Any]", positions), count=CHUNK, block=block_ms)
        return cast("Entries", found or [])

    @staticmethod
    def _hand_out(found: Entries, pushes: dict[bytes, Push]) -> dict[bytes, bytes]:
        """Push the events of each stream; returns its new position."""
        positions: dict[bytes, bytes] = {}
        for key, entries in found:
            events = [event for _, fields in entries if (event := stream.decode(fields)) is not None]
            positions[key] = entries[-1][0]
            push = pushes.get(key)
            if push is not None and events:
                push(events)
        return positions

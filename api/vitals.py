"""Alive, ready, and the figures: read by the event loop alone, each wait bounded, remembered for a second."""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass, replace
from typing import Any

import redis.asyncio as aioredis
from redis.exceptions import RedisError

from api.asking import Asking
from shared.errors import StoreUnavailable

ALIVE = """
select count(*) as n from workers where kind = 'worker' and stopped_at is null and lease_until > clock_timestamp()
"""
QUEUED = """
select class, count(*) as n, coalesce(extract(epoch from clock_now() - min(queued_at)), 0)::float8 as oldest_s
from turns where status = 'queued' group by class
"""
# How long turns waited for their first claim: those that ended in the last five minutes, and those that run.
WAITED = """
select w.class, count(*) as n, percentile_cont(0.5) within group (order by w.s) as p50,
  percentile_cont(0.95) within group (order by w.s) as p95, max(w.s) as longest
from (
  (select class, extract(epoch from started_at - created_at)::float8 as s from turns
   where finished_at > clock_now() - interval '5 minutes' and started_at is not null
   order by finished_at desc limit 5000)
  union all
  (select class, extract(epoch from started_at - created_at)::float8 from turns
   where status = 'running' and started_at is not null limit 5000)
) w group by w.class
"""
STOPS = "select scope, count(*) as n from stops where lifted_at is null group by scope"
UNKNOWN = "select count(*) as n from tool_runs where status = 'unknown'"
TURNS = "select status, count(*) as n from turns group by status"
CALLS = """
select status, purpose, count(*) as n, coalesce(sum(cost_usd), 0)::float8 as known_usd,
  count(*) filter (where cost_usd is null and status in ('settled', 'cut', 'lost')) as unknown,
  coalesce(sum(input_tokens), 0)::bigint as input, coalesce(sum(output_tokens), 0)::bigint as output,
  coalesce(sum(cache_read_tokens), 0)::bigint as cache_read,
  coalesce(sum(coalesce(cache_write_5m_tokens, 0) + coalesce(cache_write_1h_tokens, 0)), 0)::bigint as cache_write,
  coalesce(sum(estimate) filter (where told), 0)::bigint as estimated,
  coalesce(sum(projected) filter (where told), 0)::bigint as projected,
  coalesce(sum(input_tokens + cache_read_tokens + cache_write_5m_tokens + cache_write_1h_tokens)
    filter (where told), 0)::bigint as billed
from calls cross join lateral (
  select status = 'settled' and projected is not null and input_tokens is not null as told
) t group by status, purpose
"""
COUNTED = "select name, sum(value)::bigint as n from counters group by name"
REMEMBERED_S = 2.0
WAIT_S = 1.0


@dataclass(frozen=True, slots=True)
class Ready:
    """What this process needs in order to serve; `workers` is how many were seen alive."""

    database: bool
    broker: bool
    workers: int

    @property
    def all(self) -> bool:
        return self.database and self.broker and self.workers > 0


@dataclass(frozen=True, slots=True)
class Figures:
    """Rows for the metrics. `up` is False where Postgres did not answer; then the rest is what was known last."""

    up: bool
    queued: list[dict[str, Any]]
    turns: list[dict[str, Any]]
    calls: list[dict[str, Any]]
    workers: int
    waited: list[dict[str, Any]]
    stops: list[dict[str, Any]]
    unknown: list[dict[str, Any]]
    counted: list[dict[str, Any]]


class Vitals:
    def __init__(self, asking: Asking, redis_url: str) -> None:
        self._asking = asking
        self._redis = aioredis.from_url(
            redis_url, max_connections=4, socket_timeout=WAIT_S, socket_connect_timeout=WAIT_S
        )
        self._figures = Figures(
            up=False, queued=[], turns=[], calls=[], workers=0, waited=[], stops=[], unknown=[], counted=[]
        )
        self._read_at = float("-inf")
        self._reading = asyncio.Lock()

    async def close(self) -> None:
        with contextlib.suppress(RedisError, OSError):
            await self._redis.aclose()

    async def ready(self) -> Ready:
        """Asks database and broker at once; takes about a second where one of them is away."""
        workers, broker = await asyncio.gather(self._workers(), self._ping())
        return Ready(workers is not None, broker, workers or 0)

    async def _workers(self) -> int | None:
        try:
            return int((await self._asking.rows(ALIVE, wait_s=WAIT_S))[0]["n"])
        except StoreUnavailable:
            return None

    async def _ping(self) -> bool:
        try:
            async with asyncio.timeout(WAIT_S):
                return bool(await self._redis.ping())  # pyright: ignore[reportUnknownMemberType] - redis-py
        except (RedisError, OSError, TimeoutError):
            return False

    async def figures(self) -> Figures:
        """Never raises; one read at a time, however many ask."""
        async with self._reading:
            if time.monotonic() - self._read_at > REMEMBERED_S:
                self._figures = await self._read()
                self._read_at = time.monotonic()
            return self._figures

    async def _read(self) -> Figures:
        ask = self._asking.rows
        try:
            return Figures(
                up=True,
                queued=list(await ask(QUEUED, wait_s=WAIT_S)),
                turns=list(await ask(TURNS, wait_s=WAIT_S)),
                calls=list(await ask(CALLS, wait_s=WAIT_S)),
                workers=int((await ask(ALIVE, wait_s=WAIT_S))[0]["n"]),
                waited=list(await ask(WAITED, wait_s=WAIT_S)),
                stops=list(await ask(STOPS, wait_s=WAIT_S)),
                unknown=list(await ask(UNKNOWN, wait_s=WAIT_S)),
                counted=list(await ask(COUNTED, wait_s=WAIT_S)),
            )
        except StoreUnavailable:
            return replace(self._figures, up=False)

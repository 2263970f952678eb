"""Three workers that always have more to ask, one key, fifty calls a minute: the fleet's state in a real Redis, the
rehearsal provider's own limits, and a clock of the test's own, so that twenty minutes take a second."""

from __future__ import annotations

import heapq
import itertools
import random
from datetime import UTC, datetime
from typing import Any

import pytest

from deploy.rehearsal.limits import Limits, native
from shared import stream
from workers.manners import fleet as of_fleet
from workers.manners import headers
from workers.manners.fleet import Fleet
from workers.manners.terms import Asked, Limit, Told, Took

LIMIT, MINUTES = 50, 10
WORKERS, SLOTS = 3, 8
T0 = 1_900_000_000.0
ANSWER_S = 2.0
USED = {"bucket": 0.9, "window": 0.8}
"""Of the limit. A window that was filled before a flush refuses one call, and asks for most of a minute for it."""


class Saturated:
    """Every slot asks, waits or sleeps as it is told to, calls, and asks again."""

    def __init__(self, client: Any, way: str, seed: int) -> None:
        self.fleets = [Fleet(client, lambda: WORKERS) for _ in range(WORKERS)]
        self.limits = Limits()
        self.limits.set(LIMIT, way)
        self.chance = random.Random(seed)
        self.names = (f"sat{seed}{way}", f"sat{seed}{way}:key")
        self.through: list[float] = []
        self.refused: list[float] = []
        self._order = itertools.count()
        self._due: list[tuple[float, int, str, int, Took | None]] = []
        for slot in range(WORKERS * SLOTS):
            self._at(T0 + self.chance.random(), "ask", slot, None)

    def until(self, end: float) -> None:
        while self._due and self._due[0][0] < end:
            now, _, what, slot, took = heapq.heappop(self._due)
            fleet = self.fleets[slot % WORKERS]
            if what == "ask":
                self._ask(fleet, now, slot)
            elif took is not None:
                self._call(fleet, now, slot, took)

    def _ask(self, fleet: Fleet, now: float, slot: int) -> None:
        got = fleet.take(self._asked(now))
        late = self.chance.random()
        if isinstance(got, Took):
            self._at(now + got.wait_ms / 1_000 + late * 0.2, "call", slot, got)
        else:
            self._at(now + got.wait_ms / 1_000 + late, "ask", slot, None)

    def _call(self, fleet: Fleet, now: float, slot: int, took: Took) -> None:
        provider, key = self.names
        if took.wait_ms and not isinstance(fleet.still(self._asked(now)), Took):
            self._at(now, "ask", slot, None)
            return
        standing = self.limits.ask(key, now)
        assert standing is not None
        told = headers.read(tuple(native(standing, now)), datetime.fromtimestamp(now, UTC))
        told = Told(told.requests)  # its tokens are without end
        if standing.allowed:
            self.through.append(now)
            fleet.tell(provider, key, told, now * 1_000, ok=True, strikes=took.strikes)
        else:
            self.refused.append(now)
            fleet.cool(key, now * 1_000, standing.retry_s, 0.25, 60.0)
        self._at(now + ANSWER_S * self.chance.uniform(0.5, 1.5), "ask", slot, None)

    def _asked(self, now: float) -> Asked:
        return Asked(self.names[0], (self.names[1],), (Limit(),), 0.0, now * 1_000)

    def _at(self, when: float, what: str, slot: int, took: Took | None) -> None:
        heapq.heappush(self._due, (when, next(self._order), what, slot, took))


@pytest.mark.parametrize("way", ["bucket", "window"])
def test_ten_minutes_bring_at_most_two_refusals_and_use_nine_tenths_of_the_limit_and_so_after_a_flush(
    redis_url: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(of_fleet, "BLOCK_S", 0.0)  # a second of the real clock, in which minutes pass here
    client: Any = stream.connect(redis_url)
    for seed in range(1):
        fleet = Saturated(client, way, seed)
        begin = T0
        for _ in ("a start", "a flush"):
            end = begin + MINUTES * 60
            fleet.until(end)
            through = sum(begin <= one < end for one in fleet.through)
            refused = sum(begin <= one < end for one in fleet.refused)
            assert refused <= 2, (way, seed, begin)
            assert through >= USED[way] * LIMIT * MINUTES, (way, seed, begin)
            for name in fleet.names:
                client.delete(f"nightshift:manners:{name}")
            begin = end

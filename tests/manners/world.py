"""Three workers that always have more to ask of one key, on a clock of the test's own, so that minutes take no time:
each slot books, waits or sleeps as it is told to, is held back, calls, and asks again, as `workers.booking` does."""

from __future__ import annotations

import heapq
import itertools
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from deploy.rehearsal.limits import Limits, native
from workers.manners import headers
from workers.manners.fleet import Fleet
from workers.manners.terms import Asked, Limit, Told, Took, Wait
from workers.providers.failures import IN_PLACE_S

LIMIT = 50
WORKERS, SLOTS = 3, 8
T0 = 1_900_000_000.0
ANSWER_S = 2.0
OUTAGE_S = 0.5


@dataclass(frozen=True, slots=True)
class Call:
    """A booked one, of a slot."""

    slot: int
    took: Took
    booked_ms: float


class World:
    """`skew_s`: by how much the clock of each worker is ahead; `late_s`: how late at most a slot does what is due."""

    def __init__(
        self,
        fleets: Sequence[Fleet],
        way: str,
        seed: int,
        *,
        skew_s: Sequence[float] = (0.0, 0.0, 0.0),
        late_s: float = 0.2,
    ) -> None:
        self.fleets = fleets
        self.limits = Limits()
        self.limits.set(LIMIT, way)
        self.chance = random.Random(seed)
        self.names = (f"sat{seed}{way}", f"sat{seed}{way}:key")
        self.through: list[float] = []
        self.refused: list[float] = []
        self.down: list[float] = []
        """Calls that met a provider which is out."""
        self.out = False
        self.dead: set[int] = set()
        self.dies_with_probe = False
        self.open_probes = 0
        self.most_probes = 0
        self._skew, self._late = skew_s, late_s
        self._order = itertools.count()
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self.now = T0
        for slot in range(WORKERS * SLOTS):
            self._at(self.chance.random(), lambda slot=slot: self._ask(slot))

    def until(self, end: float) -> None:
        while self._due and self._due[0][0] < end:
            self.now, _, do = heapq.heappop(self._due)
            do()
        self.now = end

    def between(self, begin: float, end: float) -> tuple[float, int]:
        """Of the limit used, and how many calls were refused."""
        through = sum(begin <= one < end for one in self.through)
        return through * 60 / (LIMIT * (end - begin)), sum(begin <= one < end for one in self.refused)

    def _ask(self, slot: int) -> None:
        if slot % WORKERS in self.dead:
            return
        got = self._fleet(slot).take(self._asked(slot))
        wait_s = got.wait_ms / 1_000
        if isinstance(got, Took):
            call = Call(slot, got, self._asked(slot).now_ms)
            if got.strikes and self.dies_with_probe:
                self.dies_with_probe = False
                self.dead.add(slot % WORKERS)
            self._at(wait_s, lambda: self._go(call) if wait_s else self._send(call))
        else:
            late = self.chance.random() * (1.0 if wait_s > IN_PLACE_S else 0.05)  # a sleeper is woken by a sweep
            self._at(wait_s + late, lambda: self._ask(slot))

    def _go(self, call: Call, *, waited: bool = False) -> None:
        """Its wait is over: whether it stands."""
        if call.slot % WORKERS in self.dead:
            return
        asked = replace(self._asked(call.slot), booked_ms=call.booked_ms, waited=waited)
        fleet = self._fleet(call.slot)
        match fleet.still(asked, probe=call.took.strikes > 0):
            case Took():
                self._send(call)
            case Wait(wait_ms, resting=False) if wait_ms <= IN_PLACE_S * 1_000:
                self._at(wait_ms / 1_000, lambda: self._go(call, waited=True))
            case _:
                if call.took.strikes:
                    fleet.release(*self.names)
                self._ask(call.slot)

    def _send(self, call: Call) -> None:
        self._at(self.chance.random() * self._late, lambda: self._arrive(call))

    def _arrive(self, call: Call) -> None:
        """At the provider."""
        if call.slot % WORKERS in self.dead:
            return
        fleet, (provider, key) = self._fleet(call.slot), self.names
        at = self._asked(call.slot).now_ms
        probe = call.took.strikes > 0
        if self.out:
            self.down.append(self.now)
            self.open_probes += probe
            self.most_probes = max(self.most_probes, self.open_probes)

            def fail() -> None:
                self.open_probes -= probe
                fleet.cool(provider, self._asked(call.slot).now_ms, None, 0.25, 60.0)
                self._ask(call.slot)

            self._at(OUTAGE_S, fail)
            return
        standing = self.limits.ask(key, self.now)
        assert standing is not None
        told = headers.read(tuple(native(standing, self.now)), datetime.fromtimestamp(at / 1_000, UTC))
        fleet.tell(provider, key, Told(told.requests), at, ok=False)
        if not standing.allowed:
            self.refused.append(self.now)
            if probe:
                fleet.tell(provider, provider, Told(), at, ok=True, strikes=call.took.strikes)
            fleet.cool(key, at, math.ceil(standing.retry_s), 0.25, 60.0)
            self._at(0.1, lambda: self._ask(call.slot))
            return
        self.through.append(self.now)

        def end() -> None:
            fleet.tell(provider, key, Told(), self._asked(call.slot).now_ms, ok=True, strikes=call.took.strikes)
            self._ask(call.slot)

        self._at(ANSWER_S * self.chance.uniform(0.5, 1.5), end)

    def _fleet(self, slot: int) -> Fleet:
        return self.fleets[slot % WORKERS]

    def _asked(self, slot: int) -> Asked:
        now_ms = (self.now + self._skew[slot % WORKERS]) * 1_000
        return Asked(self.names[0], (self.names[1],), (Limit(),), 0.0, now_ms)

    def _at(self, after_s: float, do: Callable[[], None]) -> None:
        heapq.heappush(self._due, (self.now + after_s, next(self._order), do))

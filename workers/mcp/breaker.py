"""When a server that failed is tried again: not at every call, and by one caller at a time. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

FAILURES = 3
FIRST_S = 5.0
MOST_S = 300.0


@dataclass(frozen=True, slots=True)
class Breaker:
    """`failures` in a row; `shut_until` on a monotonic clock. Before it nobody tries; after it one may, who moves it
    on, so that all others still wait for what comes of that."""

    failures: int = 0
    shut_until: float = 0.0

    def may_try(self, now: float) -> bool:
        return self.failures < FAILURES or now >= self.shut_until

    def tried(self, now: float, seconds: float) -> Breaker:
        """Somebody tries now, for at most `seconds`."""
        return self if self.failures < FAILURES else replace(self, shut_until=now + seconds)

    def failed(self, now: float) -> Breaker:
        failures = min(self.failures + 1, 64)
        wait = min(MOST_S, FIRST_S * 2 ** max(0, failures - FAILURES))
        return Breaker(failures, now + wait)

    def worked(self) -> Breaker:
        return Breaker()

"""Owns how much a key may ask for in a minute, and when the whole service is out: what tests switch on.

A `bucket` fills evenly and holds a minute's worth, as the service documents its own; a `window` lets so many calls
through in any sixty seconds, which is the strictest that a provider can be.
"""

from collections import deque
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from deploy.rehearsal.http import Header

MINUTE_S: Final = 60.0
PLENTY: Final = 1_000_000
PLENTY_OF_TOKENS: Final = 4_000_000_000
WAYS: Final = ("bucket", "window")


@dataclass(slots=True)
class Meter:
    """One key. `level` is what the bucket held at `at`; `taken` the calls of the last minute."""

    level: float
    at: float
    taken: deque[float] = field(default_factory=deque[float])


@dataclass(frozen=True, slots=True)
class Standing:
    """What a call finds: whether it may go on, what is left, when all of it is back, and when to come again."""

    allowed: bool
    limit: int
    left: int
    reset_s: float
    retry_s: float


@dataclass(slots=True)
class Limits:
    """None of it holds before it is set. `down` is a status to answer with, 0 for a connection that is cut; `lists`:
    the list of models is given out all the same."""

    per_minute: int | None = None
    way: str = "bucket"
    down: int | None = None
    lists: bool = False
    meters: dict[str, Meter] = field(default_factory=dict[str, Meter])

    def set(self, per_minute: int | None, way: str) -> None:
        if way not in WAYS or (per_minute is not None and per_minute < 1):
            raise ValueError(f"a limit is a number of calls a minute, counted by {' or '.join(WAYS)}")
        self.per_minute, self.way = per_minute, way
        self.meters.clear()

    def ask(self, key: str, now: float) -> Standing | None:
        """One call of a key; None where nothing is limited."""
        limit = self.per_minute
        if limit is None:
            return None
        meter = self.meters.setdefault(key, Meter(float(limit), now))
        if self.way == "window":
            return _of_window(meter, limit, now)
        meter.level = min(float(limit), meter.level + max(0.0, now - meter.at) * limit / MINUTE_S)
        meter.at = now
        allowed = meter.level >= 1
        meter.level -= allowed
        return Standing(
            allowed, limit, int(meter.level), (limit - meter.level) * MINUTE_S / limit,
            max(0.0, 1 - meter.level) * MINUTE_S / limit,
        )  # fmt: skip


def _of_window(meter: Meter, limit: int, now: float) -> Standing:
    while meter.taken and meter.taken[0] <= now - MINUTE_S:
        meter.taken.popleft()
    allowed = len(meter.taken) < limit
    if allowed:
        meter.taken.append(now)
    oldest = meter.taken[0] + MINUTE_S - now
    return Standing(allowed, limit, limit - len(meter.taken), oldest, oldest)


def native(standing: Standing | None, now: float) -> list[Header]:
    """As the service tells it: times of RFC 3339."""
    limit, left = (standing.limit, standing.left) if standing is not None else (PLENTY, PLENTY - 1)
    reset = datetime.fromtimestamp(now + (standing.reset_s if standing is not None else 0), UTC)
    names = ("input-tokens", "output-tokens")
    tokens = [(f"anthropic-ratelimit-{name}-{what}", str(PLENTY_OF_TOKENS)) for name in names
              for what in ("limit", "remaining")]  # fmt: skip
    return [
        ("anthropic-ratelimit-requests-limit", str(limit)),
        ("anthropic-ratelimit-requests-remaining", str(left)),
        ("anthropic-ratelimit-requests-reset", reset.strftime("%Y-%m-%dT%H:%M:%SZ")),
        *tokens,
    ]


def foreign(standing: Standing | None, now: float) -> list[Header]:  # noqa: ARG001 - it tells durations, not times
    """As chat completions and Responses tell it: durations."""
    limit, left = (standing.limit, standing.left) if standing is not None else (PLENTY, PLENTY - 1)
    reset = standing.reset_s if standing is not None else 0.0
    return [
        ("x-ratelimit-limit-requests", str(limit)),
        ("x-ratelimit-remaining-requests", str(left)),
        ("x-ratelimit-reset-requests", f"{reset:.3f}s"),
        ("x-ratelimit-limit-tokens", str(PLENTY_OF_TOKENS)),
        ("x-ratelimit-remaining-tokens", str(PLENTY_OF_TOKENS)),
    ]

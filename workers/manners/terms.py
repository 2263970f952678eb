"""Owns the words of manners: what is asked, what comes back, and the numbers of both implementations. Pure.

A limit is kept as a rate (GCRA: one number, the time at which the next call is due), never as a count in a window:
whatever algorithm the provider has, no window of a minute holds more than its limit.
"""

from __future__ import annotations

from dataclasses import dataclass

from shared.providers.configured import Order

MINUTE_MS = 60_000.0
SHARE = 0.94
"""Of a limit that is used: with the burst below at most 49 of 50 calls fall into any minute, late ones included."""
BURST_MS = 1_915.0
"""Calls may come so much before they are due."""
HALF = 2.0
"""How much slower a key is used whose state is new: after a flush nobody knows what was used before."""
PATIENCE_MS = 5_000.0
"""A longer wait parks the turn."""
OF_A_BUCKET = 0.9
"""Of the time that a bucket would take to fill: where all of a limit is back in less, calls are counted in a window."""
SLOWEST_MS = 10_000.0
"""Where little is left until the provider's reset, it is spread over the time to it, at most so thin."""
PROBE_MS = 15_000.0
"""How long one probe of a key that was left alone is waited for: its worker may be gone. What is over a limit is
refused at once, so a probe that is merely slow (a long prompt, an answer that comes whole) holds up nobody else."""
PROVIDER_PROBE_MS = 60_000.0
"""The same of a provider: whether it is back, only its answer says."""
PROBE_LOOK_MS = 1_000.0
LEAST_SLEEP_MS = 500.0
KEEP_MS = 3_600_000
"""Time to live of what Redis holds."""
BLOCK_A_MINUTE = 1_200
"""A key that may be asked so often is drawn from in blocks of several calls, each good for a second."""
ANY = 1_000_000
"""The block of a key without a known limit: one look a second at whether it is left alone."""


@dataclass(frozen=True, slots=True)
class Limit:
    """Calls and tokens a minute; 0 is none that is known."""

    requests: float = 0.0
    tokens: float = 0.0


@dataclass(frozen=True, slots=True)
class Asked:
    """One call of `tokens` that count, on one of a provider's keys; `preferred` is the place of the key that the
    session spoke with last, None for none. `limits`, a key each: as configured, or as the provider told last."""

    provider: str
    keys: tuple[str, ...]
    limits: tuple[Limit, ...]
    tokens: float
    now_ms: float
    order: Order = "fill_first"
    preferred: int | None = None
    requests: int = 1
    booked_ms: float = 0.0
    """Of a call that was booked then: whether it still may go out. 0: none was."""
    waited: bool = False
    """It has been held back once since."""


@dataclass(frozen=True, slots=True)
class Took:
    """The call is booked: the key's place, how long to wait before it, how many calls in a row failed on it before
    (then this one is the probe), and for how many calls it is good."""

    at: int
    wait_ms: float
    strikes: int
    requests: int


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing is booked. `resting`: every key, or the provider, is left alone; else its limit is used up for longer
    than anybody waits in place. `probed`: it rests no more, and its probe is out."""

    wait_ms: float
    resting: bool
    strikes: int = 0
    probed: bool = False


@dataclass(frozen=True, slots=True)
class Window:
    """What a provider told of one limit: so many a minute, so many left, all of them back when (0: not told)."""

    limit: float
    left: float | None = None
    reset_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Told:
    requests: Window | None = None
    tokens: Window | None = None


NOT_TOLD = Told()

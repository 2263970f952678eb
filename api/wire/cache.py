"""What a session's row knows of its cache, its meters and its breaker, as parts of answers."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel


class Breaker(BaseModel):
    """`ineffective_strikes` and `fallback_streak` stop automatic compactions at 2; `verdict_due`: the next bill judges
    the last one."""

    ineffective_strikes: int
    fallback_streak: int
    blocked_at: datetime | None
    verdict_due: bool


class Calibration(BaseModel):
    """The last call: what was estimated, as it came and as corrected by the call before, and what was billed, in
    tokens. The ratios are of the estimate to the bill; null until there is a bill."""

    estimate: int | None
    corrected: int | None
    billed: int | None
    raw_ratio: float | None
    corrected_ratio: float | None


class Meters(BaseModel):
    """What carrying the reducible past has cost since the last edit, and would have saved as a summary, in tokens of
    input; `hold_5m` and `hold_1h` what holding the cache that long costs a call, in prices relative to input."""

    meter: float
    compact_meter: float
    junk_tokens: int
    wrote_tokens: float
    hold_5m: float
    hold_1h: float
    regrow_to: int


class Cache(BaseModel):
    warm_until: datetime | None
    ttl: str
    prefix: str | None
    blocks: int | None
    called_at: datetime | None
    keep_warm: bool
    warm_pings: int

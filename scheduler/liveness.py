"""Who is dead: a pure decision over what the sweep saw, and the memory of its looks that the decision needs.

The invariant: a doubt about the looker is never taken for a death. A restarted server makes every live process's lock
vanish at once, and a gap in the looks may hide one; all memory is dropped then, and all have one lease to lock again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

LOOKS_APART_S = 0.7
SILENT_S = 1.0
GAP_S = 2.0


class Why(StrEnum):
    LOCK_GONE = "lock_gone"  # its connection ended, and so did it: a killed process
    LEASE_OVER = "lease_over"  # it renews no longer: a frozen process, or one that is cut off


@dataclass(frozen=True, slots=True)
class Alive:
    """Locked, and its lease runs."""


@dataclass(frozen=True, slots=True)
class Suspect:
    """Something is missing, and not yet for long enough or not seen steadily enough."""


@dataclass(frozen=True, slots=True)
class Dead:
    why: Why


Verdict = Alive | Suspect | Dead


@dataclass(frozen=True, slots=True)
class Seen:
    """A live row of `workers` as one look saw it. `silent_s` is since its last renewal, by the database's clock."""

    boot_id: UUID
    beat_at: datetime
    silent_s: float
    lease_over: bool
    locked: bool
    kind: str = "worker"
    pid: int = 0


@dataclass(frozen=True, slots=True)
class Looks:
    """What is remembered: looking without a gap since `steady_since`; in it, of this process, whether the lock was ever
    seen held, and since when it is seen absent without interruption."""

    steady_since: float
    lock_was_seen: bool = False
    absent_since: float | None = None


def verdict(row: Seen, looks: Looks, now: float, lease_s: float) -> Verdict:
    """What one row is, `looks` and `now` on the looker's own clock that counts sleep."""
    steady = now - looks.steady_since >= lease_s
    if row.lease_over and steady:
        return Dead(Why.LEASE_OVER)
    if row.locked:
        return Suspect() if row.lease_over else Alive()
    if row.silent_s <= SILENT_S or looks.absent_since is None:
        return Suspect()
    if not looks.lock_was_seen and not steady:
        return Suspect()
    return Dead(Why.LOCK_GONE) if now - looks.absent_since >= LOOKS_APART_S else Suspect()


class Watch:
    """The memory of one process's looks. Not shared between threads."""

    def __init__(self, lease_s: float, now: float) -> None:
        self._lease_s = lease_s
        self._steady_since = now
        self._last = now
        self._server_started: datetime | None = None
        self._looks: dict[UUID, Looks] = {}
        self.breaks = 0

    def broken(self, now: float) -> None:
        """A look failed, or something between two of them did: trust nothing that was seen before."""
        self._steady_since = self._last = now
        self._looks.clear()
        self.breaks += 1

    def saw(self, rows: Sequence[Seen], server_started: datetime, now: float) -> list[tuple[Seen, Verdict]]:
        """Take in a look that ended at `now`, and judge each row."""
        if now - self._last > GAP_S or self._server_started not in (None, server_started):
            self.broken(now)
        self._last, self._server_started = now, server_started
        self._looks = {row.boot_id: self._remember(row, now) for row in rows}
        return [(row, verdict(row, self._looks[row.boot_id], now, self._lease_s)) for row in rows]

    def _remember(self, row: Seen, now: float) -> Looks:
        before = self._looks.get(row.boot_id, Looks(self._steady_since))
        if row.locked:
            return Looks(self._steady_since, lock_was_seen=True)
        first = now if before.absent_since is None else before.absent_since
        return Looks(self._steady_since, before.lock_was_seen, first)

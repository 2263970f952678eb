"""How strong a wall this worker's machine has: tried once, and again only where it failed."""

from __future__ import annotations

import threading
import time

from shared.sandbox.tiers import Tier, Way, probe
from shared.settings import Settings

_AGAIN_S = 30.0


class _Wall:
    """Owns the answer of this process. Of several that ask at once one probes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._way: Way | None = None
        self._at = 0.0

    def way(self) -> Way:
        with self._lock:
            stale = self._way is None or (self._way.tier is Tier.NONE and time.monotonic() - self._at > _AGAIN_S)
            if stale:
                self._way, self._at = probe(), time.monotonic()
            assert self._way is not None
            return self._way


_WALL = _Wall()
way = _WALL.way


def lacks(settings: Settings) -> str | None:
    """Why nothing may be run here, in a few words; None where something may. Takes up to a second the first time."""
    return weaker(way(), Tier(settings.sandbox_tier))


def lacks_python(settings: Settings) -> str | None:
    """As `lacks`, of what needs an interpreter."""
    found = lacks(settings)
    return found or (None if way().python else "no Python of 3.9 or later that a run may see")


def lacks_without_settings() -> str | None:
    """Why nothing could be run here, whatever was demanded."""
    return weaker(way(), Tier.CONFINED)


def weaker(found: Way, wanted: Tier) -> str | None:
    """Why `found` is less than `wanted`."""
    if found.tier is not Tier.NONE and found.tier.holds(wanted):
        return None
    have = "no sandbox" if found.tier is Tier.NONE else f"only the tier {found.tier}"
    return f"this machine has {have}, and {wanted} is demanded: {found.why}"

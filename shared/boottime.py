"""The clock of every right to act: it also counts while the machine sleeps, and is the same in all processes of a host.
Nothing else is imported here, so that a process that must stay small can ask it too."""

from __future__ import annotations

import time

_CLOCK: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def boottime() -> float:
    """Seconds since the host was started."""
    return time.clock_gettime(_CLOCK)

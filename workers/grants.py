"""The right of one tool run to act. It begins before the run is told as `started`, so that nobody reads a shorter time
than its worker goes by, and it ends for good where the lease ends: what comes back later is another right."""

from __future__ import annotations

from dataclasses import dataclass

from shared.boottime import boottime
from shared.life import Life


@dataclass(frozen=True, slots=True)
class Grant:
    """`deadline` in seconds of `boottime`; `lapses`: how often the lease had ended by then."""

    deadline: float
    lapses: int


def given(life: Life, run_s: float) -> Grant:
    """A run that is told as `started` after this may act for so many seconds, while the lease goes on."""
    return Grant(boottime() + run_s, life.lapses)


def act_until(life: Life, grant: Grant) -> float:
    """Until when (of `boottime`) it may act as things stand; a time that is over once the lease has ended since.

    The lease is renewed while the run goes on, so this grows. A worker that thaws renews at once, often before anything
    else runs in it: that its lease is there again says nothing of what others did meanwhile.
    """
    until = life.lease_deadline()  # read before the count, which rises before the lease is there again
    return min(until, grant.deadline) if life.lapses == grant.lapses else 0.0

"""Lines for the newest tool result when a limit comes near: each says what is used, what is left, and what to do now.

A line is fixed when written and replayed for ever, so it names figures of that moment and no clock.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Literal, assert_never

Kind = Literal["steps", "money", "window"]
LAST = 90
"""From this per cent on the work is to be ended, below it only planned."""

_PLAN = "Bring the work to its end: finish what is begun, leave out what matters least, keep enough for the answer."
_STOP = "Stop gathering now and write the answer from what you have; say what is left undone."


def line(kind: Kind, threshold: int, used: Decimal, limit: Decimal) -> str:
    """The warning for a limit of which `used` is gone: whole steps, dollars, or tokens of the window."""
    left = max(limit - used, Decimal(0))
    match kind:
        case "steps":
            fact = f"{used:.0f} of {limit:.0f} steps of this turn are used, {left:.0f} are left"
        case "money":
            fact = f"${used:.2f} of ${limit:.2f} are spent, ${left:.2f} are left"
        case "window":
            share = int(used * 100 / limit) if limit else 100
            fact = f"about {share} % of the context window are used, room for some {left:.0f} tokens is left"
        case _:
            assert_never(kind)
    return f"[Nightshift: {fact}. {_STOP if threshold >= LAST else _PLAN}]"

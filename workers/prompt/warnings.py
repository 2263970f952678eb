"""Lines for the newest tool result when a limit comes near: each says what is used and what to do now.

A line is fixed when written and replayed for ever, so it names figures of that moment and no clock.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Literal, assert_never

Kind = Literal["steps", "money", "window"]
LAST = 90
"""From this per cent on the work is to be ended, below it only planned."""

_WHAT: dict[Kind, str] = {
    "steps": "the steps of this turn",
    "money": "the money for this work",
    "window": "the context window",
}
_PLAN = "Bring the work to its end: finish what is begun, leave out what matters least, keep enough for the answer."
_STOP = "Stop gathering now and write the answer from what you have; say what is left undone."


def line(kind: Kind, percent: int, used: Decimal | None = None, limit: Decimal | None = None) -> str:
    """The warning for a limit of which so much is gone; with `used` and `limit` (steps, dollars, tokens) it says
    what is left."""
    fact = f"{percent} % of {_WHAT[kind]} are used"
    if used is not None and limit is not None:
        fact += f", {_amount(kind, max(limit - used, Decimal(0)))} left"
    return f"[Nightshift: {fact}. {_STOP if percent >= LAST else _PLAN}]"


def _amount(kind: Kind, left: Decimal) -> str:
    match kind:
        case "steps":
            return f"{left:.0f} steps"
        case "money":
            return f"${left:.2f}"
        case "window":
            return f"room for some {left:.0f} tokens"
        case _:
            assert_never(kind)

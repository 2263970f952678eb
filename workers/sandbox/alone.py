"""That nothing runs in the background while a file that steers is written by hand.

When such a run is over, files that steer are put back as they were when it began; it cannot tell a change that a person
allowed meanwhile from one of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from workers.sandbox import steers
from workers.sandbox.background import BACKGROUNDS
from workers.tools.context import ToolContext, ToolRefused


def must_be_alone(context: ToolContext, parts: Sequence[str]) -> None:
    """Raises `ToolRefused` where this turn runs something and `parts` steers later work."""
    if steers.steers(tuple(parts)) and BACKGROUNDS.living(context.turn):
        raise ToolRefused("this file steers later work: end your background processes before you write it")

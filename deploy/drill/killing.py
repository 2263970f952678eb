"""SIGKILL of a worker at a named point of a step, while another lives; and between `started` and `done` of a run that
is keyed or checkable, before its effect and after it."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from functools import partial

from deploy.drill import blows, effect, load
from deploy.drill.figures import Figures, account
from deploy.drill.load import Load
from deploy.drill.rig import Rig

POINTS: Mapping[str, str] = {
    "before_call": "before the call",
    "in_stream": "in its stream",
    "after_call": "after it, before commit",
    "recording": "in the commit",
    "recorded": "after transaction one",
    "before_tool": "before a tool",
    "in_tool": "in a tool",
    "after_tool": "after it, before commit",
    "parking": "while parking",
    "waking": "while waking",
}
"""Point of `workers/pause.py` → what the issue calls it."""
WORKERS = 4
"""The supervisor is in no hurry with a process that keeps dying: two are enough for the next blow."""


def load_for(rig: Rig, point: str) -> Load:
    """A turn that is sure to come by."""
    match point:
        case "parking":
            return load.asked(rig)
        case "waking":
            return load.delegating(rig)
        case _:
            return load.effects(rig)


def at(point: str, rig: Rig, figures: Figures) -> None:
    """One of three turns reaches the point; its worker dies there with all that it has in hand."""
    rig.workers_ready(2, of_more=True)
    pause = rig.arm(point)
    turns = load_for(rig, point) + load.effects(rig, 2)
    pid = load.tended(rig, pause.pid, 20, f"a worker at {point}")
    _, hand = blows.frozen(rig, pid)
    killed_at = rig.kill(pid, signal.SIGKILL)
    figures.resumes += blows.resumed(rig, [(killed_at, hand)], 30)
    account(rig, figures, turns, may_be_unknown=hand.started)


def between(point: str, tool: str, rig: Rig, figures: Figures) -> None:
    """The worker dies in the run, with its effect to come or behind it: it happens once, and nothing is unknown."""
    rig.workers_ready(2, of_more=True)
    pause = rig.arm(point)
    turns = load.effects(rig, tool=tool)
    pid = load.tended(rig, pause.pid, 20, f"a worker at {point}")
    _, hand = blows.frozen(rig, pid)
    killed_at = rig.kill(pid, signal.SIGKILL)
    figures.resumes += blows.resumed(rig, [(killed_at, hand)], 30)
    account(rig, figures, turns)


ROWS: Mapping[str, Callable[[Rig, Figures], None]] = {
    **{f"kill:{point}": partial(at, point) for point in POINTS},
    **{
        f"{kind}:{point}": partial(between, point, tool)
        for kind, tool in (("keyed", effect.KEYED), ("checkable", effect.CHECKED))
        for point in ("in_tool", "after_tool")
    },
}

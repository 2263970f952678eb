"""What a child is told of its place. It stands in the context tier, so that all children share it in the cache."""

from __future__ import annotations

from pathlib import Path

FRAME = (
    "You do one piece of work for another agent, which sees nothing of it but your last message. Write there what you"
    " found, with its sources, what you did not find, and the paths of the files you wrote. Nobody answers questions."
)
_LEVELS = 2
"""A child works in `children/NAME` of its parent's workspace."""


def house(workspace: Path, depth: int) -> Path:
    """The workspace of the conversation that a child at this depth descends from: its context file holds for all."""
    return workspace if depth == 0 else workspace.parents[_LEVELS * depth - 1]


def task(goal: str, context: str) -> str:
    """A child's first input: all it knows beside the frame."""
    return f"Goal:\n{goal}" + (f"\n\nContext:\n{context}" if context else "")

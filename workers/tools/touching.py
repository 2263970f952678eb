"""What one call reads and writes, as its tool says it from the arguments alone. Pure: names in, names out.

A tool that cannot say what it touches says nothing at all, and then its calls run alone (workers/tools/segments.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Files:
    """A file or a folder with all below it, by its path as the model writes it."""

    path: str


@dataclass(frozen=True, slots=True)
class Thing:
    """What is no file, by a name of ours: the memory of a scope, the list of jobs."""

    name: str


What = Files | Thing


@dataclass(frozen=True, slots=True)
class Touch:
    """Calls that only read the same commute; a write of one and anything of another that overlap do not."""

    reads: tuple[What, ...] = ()
    writes: tuple[What, ...] = ()


def always(touch: Touch) -> Callable[[Mapping[str, object]], Touch]:
    """Of a tool whose calls all touch the same."""
    return lambda _: touch


NOTHING = Touch()
"""Of a call that has no effect and whose answer no other call of its batch can change."""

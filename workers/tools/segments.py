"""Which calls of a batch may overlap. Pure: what each touches, in emission order; out come runs of neighbours.

Two calls that only read commute. One that writes meets every other that touches the same area, the area around it or
one inside it. A call of which nobody can tell what it touches runs alone, and nothing is moved past it: so a batch ends
as it would have ended one call after the other.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Area = tuple[str, ...]
"""Names from the outermost in; what lies below belongs to it."""


@dataclass(frozen=True, slots=True)
class Touched:
    """What one call reads and writes, as areas whose links are resolved."""

    reads: tuple[Area, ...] = ()
    writes: tuple[Area, ...] = ()


def area(names: Iterable[str]) -> Area:
    """Names that some file system takes for the same (case, composed letters) are the same here: of two calls that
    run one after the other for nothing, nobody learns anything wrong."""
    return tuple(unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold()) for name in names)


def meet(one: Touched, other: Touched) -> bool:
    """Whether the order of these two matters."""
    return _any_overlap(one.writes, (*other.reads, *other.writes)) or _any_overlap(other.writes, one.reads)


def together(calls: Iterable[Touched | None]) -> int:
    """How many of these, from the first on, may run side by side; at least 1 where there is one. None is a call that
    runs alone."""
    taken: list[Touched] = []
    for call in calls:
        if call is None:
            return max(1, len(taken))
        if any(meet(call, before) for before in taken):
            return len(taken)
        taken.append(call)
    return len(taken)


def segments(calls: Sequence[Touched | None]) -> tuple[range, ...]:
    """The whole batch, cut: positions that run side by side, one run after the other."""
    found: list[range] = []
    at = 0
    while at < len(calls):
        size = together(calls[at:])
        found.append(range(at, at + size))
        at += size
    return tuple(found)


def _any_overlap(some: tuple[Area, ...], others: tuple[Area, ...]) -> bool:
    return any(_overlap(one, other) for one in some for other in others)


def _overlap(one: Area, other: Area) -> bool:
    shorter = min(len(one), len(other))
    return one[:shorter] == other[:shorter]

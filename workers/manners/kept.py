"""Owns how what is kept by the name of a key is bounded: keys are exchanged for as long as a process lives."""

from __future__ import annotations

from typing import TypeVar

MOST_KEYS = 1_000
"""Of which a worker remembers anything: a key that is exchanged every hour is another one each time."""
K = TypeVar("K")
V = TypeVar("V")


def put(known: dict[K, V], key: K, value: V) -> None:
    """What was put last stands last; what was put first goes where there is no room. For one thread at a time."""
    known.pop(key, None)
    if len(known) >= MOST_KEYS:
        del known[next(iter(known))]
    known[key] = value

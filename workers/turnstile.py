"""Claims of one process, one at a time; the answer "nothing may run" serves everybody who waited for it.

In Postgres claims wait for each other anyway, and whoever waits there has one of the few connections that running turns
need. Doorbells come in crowds: most of them ask what the one before them has just been told.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from shared.values import TurnClass

T = TypeVar("T")


class Turnstile:
    """One a process. `clock` never goes back; what it counts is nobody's business."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._vain_since = float("-inf")
        self._vain_for: frozenset[TurnClass] = frozenset()

    def claim(self, classes: Sequence[TurnClass], ask: Callable[[], T | None]) -> T | None:
        """What `ask` returns. None without asking where a claim of these classes began after we came and found nothing:
        it saw all that we were rung for, since a row is committed before it is rung. What `ask` raises is passed on,
        and tells the others nothing."""
        came = self._clock()
        with self._lock:
            if self._vain_since > came and self._vain_for.issuperset(classes):
                return None
            began = self._clock()
            found = ask()
            if found is None:
                self._vain_since, self._vain_for = began, frozenset(classes)
            return found

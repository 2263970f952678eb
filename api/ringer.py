"""The doorbell behind a thread of its own: a broker that hangs costs a POST nothing, not even the doorbell's second."""

from __future__ import annotations

import queue
import threading

from shared.doorbell import Doorbell
from shared.values import TurnClass

MOST_WAITING = 1_000
Ring = TurnClass | str
"""A class of turns, or the name of one of the scheduler's chores."""


class Ringer:
    """`ring` returns at once. Rings that cannot wait are dropped and counted: the sweep finds what they told of."""

    def __init__(self, bell: Doorbell) -> None:
        self.bell = bell
        self.dropped = 0
        self._waiting: queue.Queue[Ring | None] = queue.Queue(MOST_WAITING)
        self._thread = threading.Thread(target=self._run, name="ringer", daemon=True)
        self._thread.start()

    def ring(self, ring: Ring) -> None:
        try:
            self._waiting.put_nowait(ring)
        except queue.Full:
            self.dropped += 1

    @property
    def missed(self) -> int:
        return self.bell.missed + self.dropped

    def _run(self) -> None:
        while (ring := self._waiting.get()) is not None:
            if isinstance(ring, TurnClass):
                self.bell.ring(ring)
            else:
                self.bell.chore(ring)

    def close(self) -> None:
        try:
            self._waiting.put_nowait(None)
        except queue.Full:
            return
        self._thread.join(1)

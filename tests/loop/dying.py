"""A worker that dies at a named point of a step, in this process, and what the sweep does with its turn."""

from __future__ import annotations

import dataclasses
from typing import Any, cast
from uuid import UUID

from shared.store.statements import one, turn_end
from tests.ground import Ground
from workers.pause import Pauses, Point


class Died(BaseException):
    """The process is gone: nothing after this point runs."""


class DiesAt:
    """Raises at the n-th time a point is reached."""

    def __init__(self, point: Point, times: int = 1) -> None:
        self._point, self._left = point, times

    def inside(self, point: Point) -> bool:
        return point is self._point

    def at(self, point: Point) -> None:
        if point is self._point:
            self._left -= 1
            if self._left == 0:
                raise Died


def die(worker: Ground, point: Point, times: int = 1) -> bool:
    """Run until the worker dies there; False where it never got there."""
    ports = dataclasses.replace(worker.ports, pauses=cast("Pauses", DiesAt(point, times)))
    mortal = Ground(worker.settings, ports, worker.person, worker.home)
    try:
        mortal.look()
    except Died:
        return True
    return False


def take_away(worker: Ground, turn: UUID, session: UUID, status: str = "queued") -> None:
    """As the sweep does, once it knows that the holder is dead."""
    code = "worker_lost_repeatedly" if status == "failed" else None
    values = {"turn": turn, "session": session, "status": status, "error_code": code, "error_text": code and "x"}

    def work(connection: Any) -> None:
        with connection.transaction():
            assert one(connection, turn_end.TAKE_AWAY, values) is not None

    worker.database.read(work)

"""One stack, many points: the worker that replaces a killed one knows the next point, so a point costs one boot."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from dataclasses import dataclass

from tests.chaos.figures import Figures, Resume, account, resume
from tests.chaos.rig import Pause, Rig


@dataclass(slots=True)
class Chain:
    """The worker that runs now was started with `ready`."""

    rig: Rig
    ready: Pause | None = None

    def at(self, point: str) -> Pause:
        """The pause at `point`, known to the running worker. Restarts it where it knows another."""
        if self.ready is None or self.ready.point != point:
            pause = self.rig.pause_at(point)
            (worker,) = self.rig.workers_ready(1)
            self.rig.replace_worker(worker["pid"])
            self.ready = pause
        return self.ready

    def following(self, point: str | None) -> None:
        """Whoever starts next knows this point."""
        self.ready = None if point is None else self.rig.pause_at(point)

    @contextlib.contextmanager
    def held(self, point: str, session: str, text: str) -> Generator[tuple[str, int]]:
        """A turn whose worker waits at the point: (turn, pid)."""
        pause = self.at(point)
        pause.arm()
        turn = self.rig.send(session, text)
        try:
            yield turn, pause.arrived()
        finally:
            pause.go()

    def kill(self, name: str, point: str, session: str, text: str, *, following: str | None) -> tuple[str, Figures]:
        """Kill the worker at the point, and follow the turn to its end."""
        with self.held(point, session, text) as (turn, pid):
            before = self.rig.one("select * from workers where pid = %s and stopped_at is null", pid)
            self.following(following)
            killed_at = self.rig.kill(pid)
        resumed: Resume = resume(self.rig, turn, killed_at, before)
        figures = account(self.rig, name, [turn])
        figures.resumes.append(resumed)
        return turn, figures

"""Turns that run while something breaks, and what is waiting beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.chaos.figures import Figures, account
from tests.chaos.rig import Rig
from tests.ground import until

RETRY_AFTER_S = 7


@dataclass(frozen=True, slots=True)
class Running:
    """Turns whose calls are all in flight at the provider, each in a session of its own."""

    rig: Rig
    turns: tuple[str, ...]

    def release(self) -> None:
        self.rig.provider.post("hold", {"hold": False})

    def account(self, name: str, *, takeovers: int = 0, more: Sequence[str] = (), seconds: float = 90.0) -> Figures:
        """All end `done`; nothing is lost, doubled or hung, and so many were taken from their workers."""
        figures = account(self.rig, name, [*self.turns, *more], seconds=seconds)
        assert figures.clean(), figures
        assert figures.takeovers == takeovers, figures
        return figures


def running(rig: Rig, count: int = 20, *, steps: int = 4, delay_s: float = 0.8) -> Running:
    """`count` turns of so many steps, held at their first call until `release`."""
    sessions = [rig.session() for _ in range(count)]
    for session in sessions:
        rig.script(
            session, policy="steps", steps=steps, tool="list_files", input={"path": "."}, delay_s=delay_s, chunks=3,
            gap_s=0.05, text=f"the answer of {session}",
        )  # fmt: skip
    rig.provider.post("hold", {"hold": True})
    turns = tuple(rig.send(session, f"turn of {session}") for session in sessions)
    for session in sessions:
        rig.wait(inflight=1, session=session)
    return Running(rig, turns)


def parked(rig: Rig, retry_after_s: int = RETRY_AFTER_S) -> str:
    """A turn that sleeps because the provider asked it to."""
    session = rig.session()
    fault = {"fault": {"kind": "status", "status": 429, "retry_after": retry_after_s}}
    rig.script(session, [fault, {"text": "awake again"}])
    turn = rig.send(session, "come back later")
    until(lambda: rig.turn(turn)["status"] == "parked", 20, "the park")
    return turn


def stalled(rig: Rig, seconds: float = 90.0) -> str:
    """A turn whose call will not answer for so long; made again it answers at once."""
    session = rig.session()
    rig.script(session, [{"text": "at last", "delay_s": seconds}, {"text": "at last"}])
    turn = rig.send(session, "take your time")
    rig.wait(inflight=1, session=session)
    return turn


def job(rig: Rig, name: str, cron: str = "0 0 1 1 *") -> str:
    """A job whose runs answer at once."""
    prompt = f"Answer script:{name}"
    rig.provider.post("script", {"name": name, "replies": [{"text": f"{name} ran"}], "repeat": True})
    made = rig.http.post("/v1/jobs", json={"name": name, "cron": cron, "prompt": prompt})
    assert made.status_code == 201, made.text
    return made.json()["id"]


def runs_of(rig: Rig, job_id: str) -> list[str]:
    """The turns of a job's ticks."""
    rows = rig.rows("select turn from ticks where job = %s and turn is not null order by instant", job_id)
    return [str(row["turn"]) for row in rows]

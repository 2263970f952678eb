"""Faults at their full length, in a stack of their own, one after another while the other tests run."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from tests.chaos import late, load
from tests.chaos.figures import Figures
from tests.chaos.rig import Rig, slack, stack

OUTAGE_S = 60.0
FREEZE_S = 20.0


@dataclass(frozen=True, slots=True)
class LongHaul:
    """Results by name; asking for one waits for it, and raises what went wrong in it."""

    results: dict[str, Future[Figures]]

    def result(self, name: str) -> Figures:
        return self.results[name].result(timeout=600)


@contextlib.contextmanager
def begun() -> Generator[LongHaul]:
    results = {name: Future[Figures]() for name in CASES}
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(_run, results)
        yield LongHaul(results)
        done.result(timeout=600)


def _run(results: dict[str, Future[Figures]]) -> None:
    try:
        with stack(workers=2, concurrency=12) as rig:
            for name, case in CASES.items():
                try:
                    results[name].set_result(case(rig))
                except BaseException as error:  # noqa: BLE001 - it is raised in the test that asks for it
                    results[name].set_exception(error)
    except BaseException as error:
        for result in results.values():
            if not result.done():
                result.set_exception(error)
        raise


def broker(rig: Rig) -> Figures:
    """The broker is frozen for a minute: with parked, due and orphaned turns, and one that is posted meanwhile."""
    rig.workers_ready(2)
    orphan, waiting = load.stalled(rig), load.parked(rig)
    due = load.job(rig, "each-minute", "* * * * *")
    holder = rig.holder(orphan)
    assert holder is not None
    session = rig.session()
    rig.script(session, [{"text": "posted in the dark"}])
    rig.freeze("valkey")
    begun_at = time.monotonic()
    posted = rig.send(session, "are you there?")
    rig.kill(holder["pid"])
    time.sleep(max(0.0, begun_at + OUTAGE_S - time.monotonic()))
    ticks = load.runs_of(rig, due)
    rig.thaw("valkey")
    assert ticks, "no tick in a whole minute"
    found = load.Running(rig, (waiting, orphan, posted, *ticks))
    figures = found.account("broker frozen for 60 s: parked, due, orphaned, posted", takeovers=1)
    rig.http.request("PATCH", f"/v1/jobs/{due}", json={"paused": True}).raise_for_status()
    return figures


def database(rig: Rig) -> Figures:
    """Postgres is away for a minute under twenty running turns."""
    rig.workers_ready(2)
    found = load.running(rig)
    with rig.held_down("postgres"):
        found.release()
        time.sleep(OUTAGE_S)
    figures = found.account("Postgres killed and away for 60 s during 20 running turns", seconds=120)
    assert figures.seconds[0] < 15 * slack(), "back, and not used"
    return figures


def frozen_database(rig: Rig) -> Figures:
    """Postgres is frozen for longer than a lease: no connection breaks, and nothing answers."""
    rig.workers_ready(2)
    found = load.running(rig)
    rig.freeze("postgres")
    found.release()
    time.sleep(FREEZE_S)
    rig.thaw("postgres")
    return found.account("Postgres frozen for 20 s during 20 running turns", seconds=120)


def frozen_worker(rig: Rig) -> Figures:
    """One worker of two is frozen for thirty seconds at its real lease of fifteen."""
    found = late.frozen_at(rig, "finishing", seconds=30)
    assert found.figures.takeovers == len(found.taken) > 0
    assert found.wrote == {}
    assert found.figures.clean(), found.figures
    return found.figures


CASES: dict[str, Callable[[Rig], Figures]] = {
    "frozen worker": frozen_worker,
    "broker": broker,
    "database": database,
    "frozen database": frozen_database,
}

"""Turns of ten steps a second through the whole stack, provider included, and what each process spends on them."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Any

import orjson

from tests.bench.figures import Figure
from tests.bench.house import SMALL_MODEL, House
from tests.bench.steps import prefix_of
from tests.ground import ROOT

COUNTS = {1: 40, 20: 240, 100: 300}
"""Concurrent turns, and how many are run in all."""
TEXT = "Look around, then say that you are done."


def measure(house: House) -> list[Figure]:
    figures: list[Figure] = []
    with house.workers(2, 64) as workers:
        (session,) = house.sessions(1)
        prefix = prefix_of(house, session)
        for concurrent, total in COUNTS.items():
            house.reset()
            house.script()
            plain = bare_turns(house, prefix, concurrent)
            before = house.cpu(workers)
            rate = _run(house, concurrent, total)
            after = house.cpu(workers)
            spent = {role: (after[role] - before[role]) / (total * 10) * 1_000 for role in after}
            told = ", ".join(f"{role} {ms:.2f}" for role, ms in spent.items() if ms >= 0.01)
            figures.append(
                Figure(
                    f"turns of ten steps, {concurrent} at once", rate, "a second", plain, "bare loops",
                    mark=40 if concurrent == 20 else None, sense="at least",
                    note=f"CPU ms a step: {told}", detail={"cpu_ms_a_step": spent},
                )
            )  # fmt: skip
    return figures


def _run(house: House, concurrent: int, total: int) -> float:
    """Turns a second. A session runs its turns one after another, so that queueing them keeps `concurrent` running."""
    sessions = house.sessions(concurrent)
    began = time.monotonic()
    turns = house.send(sessions * (total // concurrent), TEXT)
    house.wait(turns, 120)
    return len(turns) / (time.monotonic() - began)


def bare_turns(house: House, prefix: dict[str, Any], concurrent: int) -> float:
    """The same turns by bare loops, as many threads of one process."""
    found = bare_process(house, prefix, concurrent, 3 if concurrent == 1 else 1)
    return concurrent / min(one["wall_s"] for one in found)


def bare_process(house: House, prefix: dict[str, Any], count: int, rounds: int) -> list[dict[str, float]]:
    asked = {
        "url": house.rig.provider.url, "model": SMALL_MODEL, "prefix": prefix, "count": count, "rounds": rounds,
        "text": TEXT,
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.bare"], input=orjson.dumps(asked), stdout=subprocess.PIPE, cwd=ROOT,
        timeout=240, check=True,
    )  # fmt: skip
    return orjson.loads(done.stdout)

"""500 turns of ten steps on a model that takes 2 s a call, in one worker process: what waiting costs."""

from __future__ import annotations

import threading
import time

from tests.bench.figures import Figure
from tests.bench.house import House, Worker
from tests.bench.steps import prefix_of
from tests.bench.turns import TEXT, bare_process

COUNT = 500
SLOTS = 576
"""One slot in eight is kept for `interactive`, which these turns are: they may have all."""
DELAY_S = 2.0
STEPS = 10
IDEAL_S = DELAY_S * STEPS


def measure(house: House) -> list[Figure]:
    with house.workers(1, SLOTS) as (worker,):
        prefix = prefix_of(house, house.sessions(1)[0])
        house.reset()
        house.script(delay_s=DELAY_S)
        (plain,) = bare_process(house, prefix, COUNT, 1)
        sessions = house.sessions(COUNT)
        house.reset()
        house.script(delay_s=DELAY_S)
        before, peak = worker.rss, _Peak(worker)
        cpu = house.cpu([worker])
        began = time.monotonic()
        turns = house.send(sessions, TEXT)
        sent = time.monotonic() - began
        house.wait(turns, 180, 0.1)
        wall = time.monotonic() - began
        memory = (peak.stop() - before) / COUNT
        after = house.cpu([worker])
    first: dict[str, float] = {}
    for call in house.rig.provider.ledger():
        first.setdefault(call["session"], call["started"])
    arrived = max(first[session] for session in sessions) - began
    spent = ", ".join(f"{role} {after[role] - cpu[role]:.1f}" for role in after if after[role] - cpu[role] >= 0.1)
    return [
        Figure(
            f"{COUNT} turns of ten steps, {DELAY_S:g} s a call, one worker", wall, "s", plain["wall_s"], "bare loops",
            mark=1.15, judged=wall / IDEAL_S, note=f"{wall / IDEAL_S:.2f} of the ideal {IDEAL_S:g} s; CPU s: {spent}",
            detail={"ideal_s": IDEAL_S, "bare": plain},
        ),
        Figure(
            "the same: all at the provider after the first POST", arrived, "s", mark=2.0,
            note=f"last POST answered at {sent:.2f} s",
        ),
        Figure("the same: memory a turn", memory / 1_024, "kB", plain["bytes_a_turn"] / 1_024, "a bare loop's thread"),
    ]  # fmt: skip


class _Peak:
    """The most memory that a worker held since."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._most = worker.rss
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(0.2):
            self._most = max(self._most, self._worker.rss)

    def stop(self) -> int:
        self._stop.set()
        self._thread.join(2)
        return self._most

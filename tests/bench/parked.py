"""1,000 turns that wait for a person on one worker with one slot: what their waiting costs, and how they go on."""

from __future__ import annotations

import time

from tests.bench.figures import Figure, middle
from tests.bench.house import House
from tests.waiting import crowd

COUNT = 1_000
QUESTIONS = 9


def measure(house: House) -> list[Figure]:
    with house.workers(1, 1, approve_tools="write_file") as (worker,):
        alone = _questions(house)
        before = worker.rss
        waiting = crowd.writing(house.rig, COUNT)
        waiting.await_parked("approval", 300)
        memory = (worker.rss - before) / COUNT
        beside = _questions(house)
        assert waiting.parked("approval") == COUNT
        requests = crowd.pending(house.rig)
        assert len(requests) == COUNT
        began = time.monotonic()
        crowd.approve(house.rig, [row["id"] for row in requests])
        decided = time.monotonic() - began
        house.wait(waiting.turns, 300, 0.1)
        ended = time.monotonic() - began
    ledger = house.rig.provider.ledger()
    mine = set(waiting.sessions)
    calls = sum(call["session"] in mine for call in ledger)
    assert calls == 2 * COUNT, calls
    return [
        Figure(
            f"a short question while {COUNT:,} turns wait, one slot", middle(beside) * 1_000, "ms",
            middle(alone) * 1_000, "with none waiting", mark=2.0, judged=middle(beside) / middle(alone),
            note="POST to the end, median", detail={"alone_s": alone, "beside_s": beside},
        ),
        Figure(
            f"{COUNT:,} approvals decided in one go by HTTP", decided, "s",
            note=f"{COUNT / decided:,.0f} a second, four clients",
        ),
        Figure(
            "the same: all turns at their end", ended, "s",
            note=f"{COUNT / ended:,.0f} a second on one slot; all done, two calls each, none lost or made twice",
        ),
        Figure("the same: memory of the worker for each turn that waits", memory / 1_024, "kB"),
    ]  # fmt: skip


def _questions(house: House) -> list[float]:
    each: list[float] = []
    for _ in range(QUESTIONS):
        session = house.rig.session()
        house.rig.script(session, [{"text": "forty-two"}])
        began = time.monotonic()
        house.wait([house.rig.send(session, "a short question")], 30, 0.005)
        each.append(time.monotonic() - began)
    return each

"""A tree of children, three levels of ten, on one worker with one slot: that it ends, and what it takes."""

from __future__ import annotations

import time

from tests.bench.figures import Figure
from tests.bench.house import House

WIDTH = 10
DEPTH = 3
SIZE = sum(WIDTH**level for level in range(1, DEPTH + 1))
CALLS = SIZE + 1 + sum(WIDTH**level for level in range(DEPTH))
"""One a child that answers, two of everybody who delegates."""
QUESTIONS = 5


def measure(house: House) -> list[Figure]:
    rig = house.rig
    rig.provider.post("script", {"policy": "tree", "width": WIDTH, "text": "found"})
    with house.workers(1, 1, spawn_depth=DEPTH) as (worker,):
        began, before = time.monotonic(), worker.rss
        root = rig.send(rig.session(), "grow")
        waited: list[float] = []
        for _ in range(QUESTIONS):
            time.sleep(2)
            session = rig.session()
            rig.script(session, [{"text": "forty-two"}])
            asked = time.monotonic()
            house.wait([rig.send(session, "a short question")], 60, 0.005)
            waited.append(time.monotonic() - asked)
        house.wait([root], 570, 0.1)
        wall = time.monotonic() - began
        memory = worker.rss - before
    row = rig.one(
        "select count(*) filter (where status = 'done') as done, count(*) as made, sum(spent_usd) as usd"
        " from turns where parent is not null"
    )
    assert (row["done"], row["made"]) == (SIZE, SIZE), row
    mine = rig.one("select spent_usd + children_usd as usd, spent_usd as own from turns where id = %s", root)
    assert mine["usd"] - mine["own"] == row["usd"], (mine, row)
    calls = len(rig.provider.ledger()) - QUESTIONS
    assert calls == CALLS, calls
    return [
        Figure(
            f"a tree of {SIZE:,} children, {DEPTH} levels of {WIDTH}, one worker with one slot", wall, "s",
            note=f"{calls:,} calls, {calls / wall:,.0f} a second; all done, none lost or made twice; ${mine['usd']:.2f}"
            f" by its rows and by its calls; the worker grew by {memory / 1_048_576:.0f} MB",
        ),
        Figure(
            "a short question meanwhile, at its slowest", max(waited) * 1_000, "ms",
            note=f"POST to the end, of {QUESTIONS}", detail={"each_s": waited},
        ),
    ]  # fmt: skip

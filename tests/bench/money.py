"""A hundred children at once under a cap of one dollar on their parent's session, calls of unequal size, workers killed
at random: what the provider billed, by its own ledger, and what is booked, against the cap."""

from __future__ import annotations

import random
import sys
import time
from decimal import Decimal

import psycopg

from tests.bench.figures import Figure
from tests.bench.house import LIMIT, House
from tests.chaos.rig import Rig, stack, until

ROUNDS = 50
CHILDREN = 100
KILLS = 2
CAP = Decimal("1.00")
MODEL = "claude-haiku-5-5"
WORDS = (1_000, 3_000, 6_000, 7_500)
"""Of each answer, by child: tokens of output, about, so that calls cost from a twentieth of a cent to half of one."""
A_CALL = 20
WITH = """
with recursive tree(id, session) as (
  select id, session from turns where session = %s
  union select c.id, c.session from tree join turns c on c.parent = tree.id
)"""
BOOKED = f"""{WITH}
select coalesce(sum(coalesce(k.cost_usd, k.reserved_usd)), 0) as usd, count(*) as calls,
  count(*) filter (where k.status = 'lost') as lost, count(*) filter (where k.status = 'reserved') as open
from tree join calls k on k.turn = tree.id
"""  # noqa: S608 - texts of this module
LIVE = f"""{WITH}
select count(*) as n, count(*) filter (where t.parked_on = 'money') as short
from tree join turns t on t.id = tree.id where t.status in ('queued', 'running', 'parked')
"""  # noqa: S608 - texts of this module
SESSIONS = f"{WITH} select distinct session from tree"  # noqa: S608 - texts of this module


def measure(house: House) -> list[Figure]:
    settings = {"PRINCIPAL_LIMIT": LIMIT, "LOG_LEVEL": "warning", "STRICT": 1, "MAX_OUTPUT_TOKENS": 8_000}
    chance = random.Random(6)
    rounds: list[tuple[Decimal, Decimal, int, int]] = []
    went_on = 0
    with stack(workers=3, concurrency=40, settings=settings) as rig:
        for number in range(ROUNDS):
            began = time.monotonic()
            spent, billed, calls, lost, raised = _round(rig, chance)
            went_on += raised
            rounds.append((spent, billed, calls, lost))
            print(
                f"money, round {number + 1}: ${spent:.4f} booked, ${billed:.4f} billed, {calls} calls, {lost} lost,"
                f" {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True,
            )  # fmt: skip
    booked = max(spent for spent, *_ in rounds)
    billed = max(billed for _, billed, *_ in rounds)
    calls, lost = sum(row[2] for row in rounds), sum(row[3] for row in rounds)
    return [
        Figure(
            f"{CHILDREN} children under ${CAP}, {KILLS} workers killed a run: spent + assumed, most of {ROUNDS} runs",
            float(booked), "$", mark=float(CAP),
            note=f"{calls:,} calls, {lost} lost with their worker; billed by the provider at most ${billed:.4f};"
            f" raised to go on: {went_on}",
            detail={"booked": [float(row[0]) for row in rounds], "billed": [float(row[1]) for row in rounds]},
        )
    ]  # fmt: skip


def _round(rig: Rig, chance: random.Random) -> tuple[Decimal, Decimal, int, int, int]:
    """(booked, billed, calls, lost, whether a raise let it go on). Nothing of the tree is live afterwards."""
    rig.provider.reset()
    for size, words in enumerate(WORDS):
        reply = {"text": "word " * words, "tools": [{"name": "list_files", "input": {"path": "."}}]}
        rig.provider.post("script", {"name": f"size{size}", "replies": [reply], "repeat": True})
    session = rig.session(model=MODEL, cap_usd=float(CAP))
    groups = [range(first, min(first + A_CALL, CHILDREN)) for first in range(0, CHILDREN, A_CALL)]
    tools = [
        {"name": "delegate_task", "input": {"background": True, "tasks": [_task(number) for number in group]}}
        for group in groups
    ]
    spending = {"text": "word " * WORDS[-1], "tools": [{"name": "list_files", "input": {"path": "."}}]}
    rig.script(session, [{"tools": tools}, *[spending] * 500])  # beside its children, of what they leave and give back
    rig.send(session, "spend it")
    for _ in range(KILLS):
        time.sleep(chance.uniform(0.5, 3.0))
        rig.kill(chance.choice(rig.pids("worker")))
    until(lambda: _quiet(rig, session), 400, "every child at its end")
    row = rig.one(BOOKED, session)
    made = rig.one("select count(*) as n from turns c join turns p on p.id = c.parent where p.session = %s", session)
    assert (row["open"], made["n"]) == (0, CHILDREN), (row, made)
    sessions = {str(one["session"]) for one in rig.rows(SESSIONS, session)}
    ledger = [call for call in rig.provider.ledger() if call["session"] in sessions]
    billed = sum((Decimal(str(call["usd"] or 0)) for call in ledger), Decimal(0))
    assert row["usd"] <= CAP, f"${row['usd']} booked under a cap of ${CAP}"
    assert billed <= row["usd"], f"${billed} billed, ${row['usd']} booked"
    return row["usd"], billed, row["calls"], row["lost"], _raise(rig, session)


def _task(number: int) -> dict[str, str]:
    """Where its words come from is named in its goal. All goals together are one answer of the parent's."""
    return {"goal": f"part {number}, script:size{number % len(WORDS)}"}


def _quiet(rig: Rig, session: str) -> bool:
    """Nothing lives but, at most, the parent's session, which waits for a person to raise its cap."""
    try:
        row = rig.one(LIVE, session)
    except psycopg.OperationalError:  # who asks may find the database busy: it is asked again
        return False
    return row["n"] == row["short"] and row["n"] <= 1


def _raise(rig: Rig, session: str) -> int:
    if not rig.one(LIVE, session)["n"]:
        return 0
    rig.script(session, [{"text": "so"}] * 500)
    rig.http.patch(f"/v1/sessions/{session}", json={"cap_usd": 5}).raise_for_status()
    until(lambda: rig.one(LIVE, session)["n"] == 0, 120, "what waited for money")
    return 1

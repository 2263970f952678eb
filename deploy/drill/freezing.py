"""SIGSTOP of workers at the points of a step, each for longer than its lease; then SIGCONT, and they are late."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from deploy.drill import blows, effect, load
from deploy.drill.blows import InHand
from deploy.drill.figures import Figures, account, count_doubled
from deploy.drill.killing import load_for
from deploy.drill.rig import Pause, Rig, slack, until

TABLES = ("sessions", "turns", "messages", "edits", "calls", "tool_runs", "inbox", "approvals", "questions")
GROUPS: Sequence[Sequence[str]] = (
    ("before_tool", "in_tool", "keyed", "after_tool", "parking", "waking"),
    ("before_call", "in_stream", "after_call", "recorded", "recording"),
)
"""Frozen side by side, each in a worker of its own: a lease is long. What stands in a transaction comes last, for the
server ends one that stands still after five seconds."""
KEYED = "keyed"
"""In a keyed run, its effect to come: it runs again elsewhere, and the thawed worker acts once more under its key."""
WORKERS = 8  # of one slot each: a frozen one holds one turn, and enough are left to go on with all of them
LATE_S = 3.0


def group(points: Sequence[str], rig: Rig, table: Mapping[str, Figures], lease_s: float) -> None:
    """Freeze a worker at each of the points, see every turn go on elsewhere, and thaw them all."""
    rig.workers_ready(WORKERS, 60)
    held: dict[str, tuple[int, Pause, float, InHand, load.Load]] = {}
    for point in points:
        pause = rig.arm("in_tool" if point == KEYED else point)
        turns = load.effects(rig, tool=effect.KEYED) if point == KEYED else load_for(rig, point)
        pid = load.tended(rig, pause.pid, 20, f"a worker at {point}")
        at, hand = blows.frozen(rig, pid)
        held[point] = (pid, pause, at, hand, turns)
    for point, (_, _, at, hand, _) in held.items():
        table[point].resumes += blows.resumed(rig, [(at, hand)], 45)
    for point, (_, _, _, hand, turns) in held.items():
        account(rig, table[point], turns, may_be_unknown=hand.started, seconds=90)
    last = max(at for _, _, at, _, _ in held.values())
    time.sleep(max(0.0, last + lease_s + LATE_S - time.time()))
    before = {point: _written(rig, one[4]) for point, one in held.items()}
    for pid, pause, *_ in held.values():
        blows.thaw(rig, pid, pause)
    for point, (_, _, _, hand, turns) in held.items():
        _is_late(rig, table[point], hand)
        _wrote_nothing(rig, table[point], turns, before[point])
        count_doubled(rig, table[point], turns)


def _is_late(rig: Rig, figures: Figures, hand: InHand) -> None:
    """The thawed worker finds out by itself that its turns are others' by now."""
    try:
        until(lambda: hand.turns <= {row["turn"] for row in rig.logged("turn.let_go")}, 20 * slack(), "its finding")
    except AssertionError:
        figures.wrong("hung", f"a thawed worker did not let go of {', '.join(sorted(hand.turns))}")


def _wrote_nothing(rig: Rig, figures: Figures, turns: load.Load, before: Sequence[str]) -> None:
    for line in sorted(set(_written(rig, turns)) - set(before)):
        figures.wrong("duplicated", f"written by a late worker: {line[:200]}")


def _written(rig: Rig, turns: load.Load) -> list[str]:
    """Every row of these turns' sessions and of their children's, with the transaction that wrote it."""
    sessions = [
        row["session"]
        for row in rig.rows(
            "select session from turns where id = any(%s::uuid[]) or parent = any(%s::uuid[])",
            list(turns.turns), list(turns.turns),
        )
    ]  # fmt: skip
    found: list[str] = []
    for table in TABLES:
        key = "id" if table == "sessions" else "session"
        query = f"select xmin::text || ' ' || t::text as line from {table} t where {key} = any(%s::uuid[])"  # noqa: S608 - names from the list above
        found += [f"{table} {row['line']}" for row in rig.rows(query, sessions)]
    return found

"""What tools cost: a call through dispatch, a command in the sandbox, reads side by side, the floor; memory over 5,000
turns by itself. Each is held against the least that the same machine does at the same time."""

from __future__ import annotations

import json
import math
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import psycopg

from shared import doorbell
from shared.boottime import boottime
from shared.request import blocks
from shared.store import intake
from shared.values import OnBusy, TurnClass
from tests.bench import floor
from tests.bench.figures import Figure, middle
from tests.bench.house import House
from tests.bench.slow_worker import NAME, READ_S
from workers.tools import dispatch, terminal, todo
from workers.tools.context import ToolContext

CALLS, ROUNDS = 2_000, 7
COMMANDS = 40
READS, BATCHES = 8, 15
TURNS, FROM, SESSIONS, SLOTS = 5_000, 500, 250, 8


def measure(house: House) -> list[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        workspace = Path(folder) / "workspace"
        Path(folder).chmod(0o755)  # the sandbox of a root's worker is another user's
        workspace.mkdir()
        context = _context(workspace)
        figures = [_dispatch(context), _terminal(context)]
    figures.append(_reads(house))
    house.reset()
    return [*figures, *floor.measure(house)]


def _context(workspace: Path) -> ToolContext:
    return ToolContext("bench", "turn", 1, 1, workspace, None, lambda: False, math.inf)


def _dispatch(context: ToolContext) -> Figure:
    """A call with its arguments as text, checked against the schema, its result bounded; and the function alone."""
    arguments = {"items": [{"text": "look at the notes of the day", "done": False}] * 3}
    text = json.dumps(arguments)
    through, bare = list[float](), list[float]()
    for _ in range(ROUNDS):
        through.append(_each(lambda: dispatch.run_one(context, "todo", text)))
        bare.append(_each(lambda: todo.run(context, arguments)))
    added = middle(through) - middle(bare)
    return Figure(
        "dispatch: a call of todo", middle(through), "us", middle(bare), "the function alone",
        note=f"added {added:.1f} us: arguments parsed and checked, the result bounded",
        detail={"through_us": through, "bare_us": bare},
    )  # fmt: skip


def _each(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    for _ in range(CALLS):
        work()
    return (time.perf_counter() - began) / CALLS * 1e6


def _terminal(context: ToolContext) -> Figure:
    ours, bare = list[float](), list[float]()
    for _ in range(COMMANDS):
        began = time.perf_counter()
        now = ToolContext(
            context.session, context.turn, 1, 1, context.workspace, None, lambda: False, boottime() + 30
        )  # fmt: skip
        came = terminal.run(now, {"command": "echo so it is"})
        ours.append((time.perf_counter() - began) * 1e3)
        assert "so it is" in came.text, came.text
        began = time.perf_counter()
        subprocess.run(["/bin/bash", "-c", "echo so it is"], cwd=context.workspace, capture_output=True, check=True)
        bare.append((time.perf_counter() - began) * 1e3)
    return Figure(
        "terminal: echo", middle(ours), "ms", middle(bare), "a bare subprocess",
        note=f"added {middle(ours) - middle(bare):.1f} ms: launcher, sandbox, its end seen",
        detail={"ours_ms": ours, "bare_ms": bare},
    )  # fmt: skip


def _reads(house: House) -> Figure:
    """From one request to the next, with one slow read between them and with eight: the ideal is as long."""
    one, eight = list[float](), list[float]()
    with house.workers(1, 8, program=("tests.bench.slow_worker",)):
        for _ in range(BATCHES):
            one.append(_gap(house, 1))
            eight.append(_gap(house, READS))
    ideal, took = middle(one), middle(eight)
    return Figure(
        f"{READS} reads of {READ_S * 1000:.0f} ms in one step", took, "ms", ideal, "one such read, the ideal",
        mark=0.8, sense="at least", judged=ideal / took,
        note=f"{ideal / took:.2f} of the ideal; one after the other {READS * READ_S * 1000:.0f} ms and more",
        detail={"one_ms": one, "eight_ms": eight},
    )  # fmt: skip


def _gap(house: House, reads: int) -> float:
    session = house.rig.session()
    calls = [{"name": NAME, "input": {"number": number}} for number in range(reads)]
    house.rig.provider.script([{"tools": calls}, {"text": "so it is"}], session=session)
    house.wait([house.rig.send(session, "read")], 30)
    first, second = [call["started"] for call in house.rig.provider.ledger(session)]
    return (second - first) * 1e3


# --- memory ---------------------------------------------------------------------------------------------------------


def memory(house: House) -> list[Figure]:
    """Resident bytes of one worker as its turns go by, each of two steps with a tool. While one half of the sessions is
    waited for, the other is sent already: on a machine without CPU to spare an idle worker takes itself for deaf."""
    seen: list[tuple[int, int]] = []
    with house.workers(1, SLOTS) as (worker,):
        house.reset()
        _script(house)
        sessions = house.sessions(SESSIONS)
        halves = [sessions[: SESSIONS // 2], sessions[SESSIONS // 2 :]]
        under_way = _admit(house, halves[0])
        done = 0
        while done < TURNS:
            halves.reverse()
            following = _admit(house, halves[0])
            house.wait(under_way, 300)
            done += len(under_way)
            under_way = following
            seen.append((done, worker.rss))
        house.wait(under_way, 300)
    after = [(turns, rss) for turns, rss in seen if turns >= FROM]
    slope = _slope(after) / 1024
    shown = ", ".join(f"{turns:,}: {rss / 2**20:.0f} MB" for turns, rss in seen[:: max(1, len(seen) // 6)])
    return [
        Figure(
            f"memory of a worker a turn, turns {FROM} to {TURNS:,}", slope, "kB", mark=1.0,
            note=f"resident after {shown}; at the end {seen[-1][1] / 2**20:.0f} MB",
            detail={"resident": seen},
        )
    ]  # fmt: skip


def _admit(house: House, sessions: Sequence[str]) -> list[str]:
    """A turn to each, as the API makes it, and rings for all slots: what is measured is the worker alone."""
    facts = house.rig.facts
    turns: list[str] = []
    with psycopg.connect(facts["database_url"], autocommit=True) as connection:
        rows = connection.execute(
            "select id, owner from sessions where id = any(%s::uuid[])", (list(sessions),)
        ).fetchall()
        for session, owner in rows:
            words = blocks.join([blocks.text("go on")])
            new = intake.NewTurn(session, owner, TurnClass.INTERACTIVE, words, deadline_s=7_200, max_steps=9)
            with connection.transaction():
                turns.append(str(intake.admit(connection, new, on_busy=OnBusy.QUEUE, queue_bound=9).turn))
    bell = doorbell.Doorbell(doorbell.celery_app(facts["redis_url"]))
    for _ in range(SLOTS):
        bell.ring(TurnClass.INTERACTIVE)
    return turns


def _script(house: House) -> None:
    steps: dict[str, Any] = {"steps": 1, "tool": "todo", "input": {"items": [{"text": "go on", "done": False}]}}
    house.script(**steps)


def _slope(points: list[tuple[int, int]]) -> float:
    """Bytes a turn, by least squares."""
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread

"""What tools cost: a call through dispatch, a command in the sandbox, reads side by side, the floor. Each is held
against the least that the same machine does at the same time."""

from __future__ import annotations

import json
import math
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from shared.boottime import boottime
from tests.bench import floor
from tests.bench.figures import Figure, middle
from tests.bench.house import House
from tests.bench.slow_worker import NAME, READ_S
from workers.tools import dispatch, terminal, todo
from workers.tools.context import ToolContext

CALLS, ROUNDS = 2_000, 7
COMMANDS = 40
READS, BATCHES = 8, 15


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

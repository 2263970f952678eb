"""`./dev test-local-model [--turns N]`: turns of a real model through the real API, workers, Postgres and Valkey.

The model is weak: what it says is not judged. Each turn must end in an answer or in a failure with its reason, in time;
what was sent of its session must be what its rows project to, each tool call answered; and the next turn must work.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
if __name__ == "__main__":  # a script's own folder stands first on the path: its names are not top-level ones
    sys.path[0] = str(ROOT)

import psycopg  # noqa: E402 - the path comes first

from deploy.drill.rig import TERMINAL, DidNotHappen, Rig, slack, stack  # noqa: E402
from shared.request import blocks  # noqa: E402
from shared.store import transcript  # noqa: E402
from shared.store.pool import Connection  # noqa: E402
from tests.localmodel.turns import TURNS, Asked  # noqa: E402

MODEL = "smollm2-135m"
WINDOW = 8_192
ANSWER = 160
"""Tokens that one reply may have: more of the same says nothing new, and takes minutes."""
STEPS = 6
LIMIT_S = 900.0
"""Of one turn, on a machine with a core for each runnable task. The first one has its whole prompt read."""


@dataclass(frozen=True, slots=True)
class Came:
    """What came of one turn. `faults`: why it is not as it must be."""

    asked: Asked
    row: dict[str, Any]
    calls: Sequence[dict[str, Any]]
    runs: Sequence[dict[str, Any]]
    seconds: float
    faults: Sequence[str]


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="./dev test-local-model", description="Turns of a real, small, weak model.")
    parser.add_argument("--python", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--turns", type=int, default=len(TURNS), help="only the first so many of %(default)s")
    asked = parser.parse_args(argv)
    began = time.monotonic()
    with model(asked.python) as url:
        print(f"the model serves {url} after {time.monotonic() - began:.0f} s", flush=True)
        settings = {
            "REHEARSAL": 0, "PROVIDER": "llama.cpp", "PROVIDER_BASE_URL": url, "MODEL": MODEL, "CONTEXT_WINDOW": WINDOW,
            "MAX_OUTPUT_TOKENS": ANSWER, "MAX_STEPS": STEPS, "READ_TIMEOUT_S": 90, "LOG_LEVEL": "warning",
        }  # fmt: skip
        with stack(workers=1, concurrency=2, settings=settings) as rig:
            came = _all(rig, TURNS[: asked.turns])
    bad = [one for one in came if one.faults]
    for one in bad:
        print(f"{one.asked.aim}: {'; '.join(one.faults)}")
    used = f"{sum(len(one.runs) for one in came)} tool calls, {sum(len(one.calls) for one in came)} calls of the model"
    print(f"{used}, {time.monotonic() - began:.0f} s, load {os.getloadavg()[0]:.1f}")
    print(f"{len(came) - len(bad)} passed, {len(bad)} failed")
    return 1 if bad else 0


@contextlib.contextmanager
def model(python: str) -> Generator[str]:
    """The model as a process; its address."""
    folder = Path(__file__).parent
    words = [python, "-I", str(folder / "serve.py"), str(folder / "template.jinja"), MODEL]
    env = {"PATH": os.environ["PATH"]}
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert "ready" in line, f"the model did not start: {line!r} (exit code {process.poll()})"
        yield line.split()[-1]
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(5)


def _all(rig: Rig, turns: Sequence[Asked]) -> list[Came]:
    sessions: dict[str, str] = {}
    came: list[Came] = []
    for number, asked in enumerate(turns, start=1):
        session = sessions.setdefault(asked.session, "") or rig.session()
        sessions[asked.session] = session
        one = _turn(rig, session, asked)
        came.append(one)
        print(f"{number:2} {_line(one)}", flush=True)
    return came


def _turn(rig: Rig, session: str, asked: Asked) -> Came:
    at = time.monotonic()
    turn = rig.send(session, asked.text)
    faults: list[str] = []
    try:
        rig.ended(turn, LIMIT_S)
    except DidNotHappen:
        faults.append(f"it hung: no end within {LIMIT_S * slack():.0f} s")
        rig.cancel(turn)
    row = rig.one("select * from turns where id = %s", turn)
    if row["status"] in TERMINAL:
        if row["status"] == "done" and not (row["answer"] or "").strip():
            faults.append("done without an answer")
        if row["status"] == "failed" and not (row["error_code"] and row["error_text"]):
            faults.append("failed without a reason")
    calls = rig.rows("select * from calls where turn = %s order by step, id", turn)
    runs = rig.rows("select * from tool_runs where turn = %s order by step, ordinal", turn)
    with psycopg.connect(rig.facts["database_url"], autocommit=True) as connection:
        faults += _corrupt(connection, session, calls)
    faults += [row["error"] for row in rig.logged("turn_crashed")]
    return Came(asked, row, calls, runs, time.monotonic() - at, faults)


def _corrupt(connection: Connection, session: str, calls: Sequence[dict[str, Any]]) -> list[str]:
    """What is wrong with a session's rows: a call that cannot be written again as it went out, a tool call without its
    one answer."""
    faults = [f"call {one['id']} is not what its rows say" for one in calls if not _agrees(connection, one)]
    rows = connection.execute(
        b"select role, content from messages where session = %s order by id", (session,)
    ).fetchall()
    open_calls: set[str] = set()
    for role, content in rows:
        for block in blocks.split(content):
            told = blocks.parse(block)
            if told.get("type") == "tool_use":
                open_calls.add(str(told["id"]))
            if told.get("type") == "tool_result" and role == "user":
                if told["tool_use_id"] not in open_calls:
                    faults.append(f"a result without its call: {told['tool_use_id']}")
                open_calls.discard(str(told["tool_use_id"]))
    return faults + [f"a call without its result: {one}" for one in sorted(open_calls)]


def _agrees(connection: Connection, call: dict[str, Any]) -> bool:
    return transcript.replay(connection, call["id"]).agrees


def _line(one: Came) -> str:
    tools = [f"{run['tool']}:{run['status']}" for run in one.runs]
    ended = one.row["error_code"] or re.sub(r"\s+", " ", one.row["answer"] or "")[:70]
    told = f"{one.asked.aim}: {one.row['status']} after {one.seconds:.0f} s, {len(one.calls)} calls"
    return f"{told}{' ' + ' '.join(tools) if tools else ''}: {ended}"


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

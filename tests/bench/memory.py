"""What a worker's memory grows by with each turn: 5,000 turns of two steps with three tools, one worker of eight slots,
all queued beforehand so that no slot is ever idle. What grew is told by type, counted in the worker by this drive."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import psycopg

from shared import doorbell
from shared.request import blocks
from shared.store import intake
from shared.values import OnBusy, TurnClass
from tests.bench.figures import Figure
from tests.bench.house import House, Worker

TURNS, FROM, SESSIONS, SLOTS = 5_000, 500, 250, 8
TRACE: tuple[str, ...] = ()
"""`--trace` has the lines told that have allocated most; it costs memory, so no figure of it counts."""
PATIENCE_S = 600.0
"""Without a single turn's end."""
_EVERY_S = 0.5
_TOLD_S = 300.0
_MOST_GREW = 12


def measure(house: House) -> list[Figure]:
    """Resident bytes of one worker as its turns go by, and their slope from turn `FROM` on by least squares."""
    house.reset()
    with tempfile.TemporaryDirectory(prefix="ns-memory-") as folder:
        admitted = _admit(house, _sessions(house))
        with house.workers(1, SLOTS, program=("tests.bench.memory_worker", folder, *TRACE)) as (worker,):
            _ring(house)
            seen, told = _watch(house, worker, admitted, Path(folder))
    after = [(turns, rss) for turns, rss in seen if turns >= FROM]
    slope = _slope(after) / 1024
    grew = _grew(told[0]["types"], told[-1]["types"], seen[-1][0] - after[0][0])
    shown = ", ".join(f"{turns:,}: {rss / 2**20:.1f} MB" for turns, rss in _few(seen))
    return [
        Figure(
            f"memory of a worker a turn, turns {FROM} to {TURNS:,}", slope, "kB", mark=1.0,
            note=f"resident after {shown}; objects a turn that stay: {grew or 'none'}",
            detail={"resident": seen, "first": told[0], "last": told[-1]},
        )
    ]  # fmt: skip


def _sessions(house: House) -> list[str]:
    sessions = house.sessions(SESSIONS)
    tools = [
        {"name": "todo", "input": {"items": [{"text": "go on", "done": False}]}},
        {"name": "write_file", "input": {"path": "notes.txt", "content": "so it is\n" * 20}},
        {"name": "read_file", "input": {"path": "notes.txt"}},
    ]
    for session in sessions:
        house.rig.provider.script([{"tools": tools}, {"text": "so it is"}], session=session, repeat=True)
    return sessions


def _admit(house: House, sessions: Sequence[str]) -> list[str]:
    """All turns, as the API makes them: what is measured is the worker alone."""
    turns: list[str] = []
    words = blocks.join([blocks.text("go on")])
    with psycopg.connect(house.rig.facts["database_url"], autocommit=True) as connection:
        rows = connection.execute(
            "select id, owner from sessions where id = any(%s::uuid[])", (list(sessions),)
        ).fetchall()
        for at in range(TURNS):
            session, owner = rows[at % len(rows)]
            new = intake.NewTurn(session, owner, TurnClass.INTERACTIVE, words, deadline_s=86_400, max_steps=9)
            with connection.transaction():
                turns.append(str(intake.admit(connection, new, on_busy=OnBusy.QUEUE, queue_bound=TURNS).turn))
    return turns


def _ring(house: House) -> None:
    bell = doorbell.Doorbell(doorbell.celery_app(house.rig.facts["redis_url"]))
    for _ in range(SLOTS):
        bell.ring(TurnClass.INTERACTIVE)


def _watch(
    house: House, worker: Worker, turns: Sequence[str], folder: Path
) -> tuple[list[tuple[int, int]], list[dict[str, Any]]]:
    """(turns that have ended, resident bytes) as they go by; and what the worker told, once from `FROM` on, and after
    the last."""
    seen: list[tuple[int, int]] = []
    told: list[dict[str, Any]] = []
    last = time.monotonic()
    query = (
        b"select count(*), count(*) filter (where status <> 'done') from turns"
        b" where finished_at is not null and id = any(%s::uuid[])"
    )
    with psycopg.connect(house.rig.facts["database_url"], autocommit=True) as connection:
        while not seen or seen[-1][0] < len(turns):
            row = connection.execute(query, (list(turns),)).fetchone()
            assert row is not None
            assert row[1] == 0, f"{row[1]} turns are not done"
            if seen and row[0] == seen[-1][0]:
                assert time.monotonic() - last < PATIENCE_S, f"no turn has ended for {PATIENCE_S:g} s, at {row[0]:,}"
                assert worker.process.poll() is None, f"the worker ended after {row[0]:,} turns"
            else:
                last = time.monotonic()
                seen.append((row[0], worker.rss))
            if not told and row[0] >= FROM:
                told.append(_ask(worker, folder, 1))
            time.sleep(_EVERY_S)
    told.append(_ask(worker, folder, 2))
    return seen, told


def _ask(worker: Worker, folder: Path, number: int) -> dict[str, Any]:
    (folder / f"{number}.ask").touch()
    answer = folder / f"{number}.json"
    until = time.monotonic() + _TOLD_S
    while not answer.exists():
        assert worker.process.poll() is None, "the worker ended"
        assert time.monotonic() < until, "the worker does not tell what it holds"
        time.sleep(0.05)
    return json.loads(answer.read_text("utf-8"))


def _grew(first: Mapping[str, int], last: Mapping[str, int], turns: int) -> str:
    """Types of which there is one more at least in twenty turns."""
    rates = {name: (count - first.get(name, 0)) / max(1, turns) for name, count in last.items()}
    found = sorted(((rate, name) for name, rate in rates.items() if rate >= 0.05), reverse=True)[:_MOST_GREW]
    return ", ".join(f"{name} {rate:.2f}" for rate, name in found)


def _few(seen: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    step = max(1, len(seen) // 8)
    return [*seen[:-1:step], seen[-1]]


def _slope(points: Sequence[tuple[int, int]]) -> float:
    """Bytes a turn, by least squares."""
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else 0.0

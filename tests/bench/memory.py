"""What memory grows by with each turn: 5,000 turns of two steps with three tools, on one worker of eight slots.

The load is the same at the end as at the beginning, so that what grows is kept and not in use: clients make a session,
have twenty turns run in it one after another, each followed on its stream to the end, and go on to the next session.
Every turn comes by HTTP with its ring, so the API, the scheduler and the launcher are seen at work too.
"""

from __future__ import annotations

import json
import tempfile
import threading
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.figures import Figure
from tests.bench.house import House, Worker, resident
from tests.bench.readers import reader
from tests.chaos.rig import family, until

TURNS, FROM, EACH, SLOTS, CLIENTS = 5_000, 500, 20, 8, 12
TRACE: tuple[str, ...] = ()
"""`--trace` has the lines told that have allocated most; it costs memory, so no figure of it counts."""
PATIENCE_S = 600.0
"""Without a single turn's end."""
_EVERY_S = 0.5
_TOLD_S = 300.0
_MOST_GREW = 12
_TOOLS = [
    {"name": "todo", "input": {"items": [{"text": "go on", "done": False}]}},
    {"name": "write_file", "input": {"path": "notes.txt", "content": "so it is\n" * 20}},
    {"name": "read_file", "input": {"path": "notes.txt"}},
]


@dataclass(frozen=True, slots=True)
class _Sample:
    """Bytes in memory by role, when so many turns had ended."""

    turns: int
    bytes: Mapping[str, int]


def measure(house: House) -> list[Figure]:
    """Resident bytes of each process as turns go by, and their slope from turn `FROM` on by least squares."""
    house.reset()
    house.rig.provider.script([{"tools": _TOOLS}, {"text": "so it is"}], repeat=True)
    with tempfile.TemporaryDirectory(prefix="ns-memory-") as folder:
        program = ("tests.bench.memory_worker", folder, *TRACE)
        with house.workers(1, SLOTS, program=program) as (worker,), _Clients(house) as clients:
            began, before = time.monotonic(), house.cpu([worker])
            seen, told = _watch(house, worker, clients, Path(folder))
            spent, after = time.monotonic() - began, house.cpu([worker])
    cpu = {role: (after[role] - before[role]) * 1_000 / seen[-1].turns for role in after}
    counted = [one for one in seen if one.turns >= FROM]
    detail = {"first": told[0], "last": told[1], "cpu_ms_a_turn": cpu, "seconds": spent}
    return [_figure(role, seen, counted, _kept(*told), detail) for role in seen[-1].bytes]


def _figure(
    role: str, seen: Sequence[_Sample], counted: Sequence[_Sample], kept: str, detail: Mapping[str, Any]
) -> Figure:
    points = [(one.turns, one.bytes[role]) for one in seen]
    shown = ", ".join(f"{turns:,}: {size / 2**20:.1f} MB" for turns, size in _few(points, counted[0].turns))
    own = role == "worker"
    cpu = ", ".join(f"{name} {ms:.1f}" for name, ms in detail["cpu_ms_a_turn"].items() if ms >= 0.1)
    more = f"; {kept}; {detail['seconds']:.0f} s; CPU ms a turn: {cpu}" if own else ""
    return Figure(
        f"memory of {'a worker' if own else f'the {role}'} a turn, turns {FROM} to {TURNS:,}",
        slope([(one.turns, one.bytes[role]) for one in counted]) / 1024, "kB", mark=1.0 if own else None,
        note=f"resident after {shown}{more}", detail={"resident": points, **(detail if own else {})},
    )  # fmt: skip


class _Clients:
    """`CLIENTS` people, who work until `TURNS` turns are sent. `check` raises what stopped one of them."""

    def __init__(self, house: House) -> None:
        self._rig = house.rig
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._go = threading.Event()
        self._go.set()
        self._given = self._sent = self.ended = 0
        self._pool = ThreadPoolExecutor(CLIENTS)
        self._work = [self._pool.submit(self._go_on) for _ in range(CLIENTS)]

    def __enter__(self) -> _Clients:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._go.set()
        self._pool.shutdown(cancel_futures=True)

    def check(self) -> None:
        for one in self._work:
            if one.done():
                one.result()

    @contextmanager
    def at_rest(self) -> Generator[None]:
        """Nobody sends meanwhile, and all that was sent has ended."""
        self._go.clear()
        try:
            until(self._rests, PATIENCE_S, "the end of what was sent")
            yield
        finally:
            self._go.set()

    def _rests(self) -> bool:
        self.check()
        with self._lock:
            return self._sent == self.ended

    def _go_on(self) -> None:
        with reader(self._rig, self._stop) as client:
            while turns := self._share():
                session = client.session()
                for _ in range(turns):
                    if not self._may_send():
                        return
                    last = client.follow(client.send(session, "go on"))
                    assert (last["status"], last["answer"]) == ("done", "so it is"), last
                    with self._lock:
                        self.ended += 1

    def _may_send(self) -> bool:
        while True:
            self._go.wait(PATIENCE_S)
            with self._lock:
                if self._stop.is_set():
                    return False
                if self._go.is_set():
                    self._sent += 1
                    return True

    def _share(self) -> int:
        """How many turns the next session gets."""
        with self._lock:
            turns = min(EACH, TURNS - self._given)
            self._given += turns
        return turns


def _watch(
    house: House, worker: Worker, clients: _Clients, folder: Path
) -> tuple[list[_Sample], tuple[dict[str, Any], dict[str, Any]]]:
    """Samples as turns end; and what the worker told when it was at rest: shortly before `FROM`, so that what telling
    takes is not counted, and after the last turn."""
    pids = _pids(house, worker)
    seen: list[_Sample] = []
    first: dict[str, Any] | None = None
    last = time.monotonic()
    while not seen or seen[-1].turns < TURNS:
        clients.check()
        ended = clients.ended
        if seen and ended == seen[-1].turns:
            assert time.monotonic() - last < PATIENCE_S, f"no turn has ended for {PATIENCE_S:g} s, at {ended:,}"
            assert worker.process.poll() is None, f"the worker ended after {ended:,} turns"
        else:
            last = time.monotonic()
            seen.append(_Sample(ended, {role: resident(pid) for role, pid in pids.items()}))
        if first is None and ended >= FROM * 9 // 10:
            with clients.at_rest():
                first = _ask(worker, folder, 1) | {"turns": clients.ended}
        time.sleep(_EVERY_S)
    assert first is not None
    return seen, (first, _ask(worker, folder, 2) | {"turns": clients.ended})


def _pids(house: House, worker: Worker) -> dict[str, int]:
    def launcher() -> int | None:
        lines = {pid: _command(pid) for pid in family(worker.process.pid)}
        return next((pid for pid in sorted(lines) if b"tools.launcher" in lines[pid]), None)

    found = until(launcher, 20, "the worker's launcher")
    return {
        "worker": worker.process.pid, "launcher": found, "api": house.rig.pid("api"),
        "scheduler": house.rig.pid("scheduler"),
    }  # fmt: skip


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _ask(worker: Worker, folder: Path, number: int) -> dict[str, Any]:
    (folder / f"{number}.ask").touch()
    answer = folder / f"{number}.json"
    end = time.monotonic() + _TOLD_S
    while not answer.exists():
        assert worker.process.poll() is None, "the worker ended"
        assert time.monotonic() < end, "the worker does not tell what it holds"
        time.sleep(0.05)
    return json.loads(answer.read_text("utf-8"))


def _kept(first: Mapping[str, Any], last: Mapping[str, Any]) -> str:
    """What the worker holds more of than before, a turn: in Python's blocks, in the allocator's bytes, by type."""
    turns = max(1, last["turns"] - first["turns"])
    blocks = (last["blocks"] - first["blocks"]) / turns
    malloc = (last["malloc_used"] - first["malloc_used"]) / turns
    free = (last["malloc_free"] - first["malloc_free"]) / 2**20
    types = ", ".join(_grew(first["types"], last["types"], turns)) or "none"
    return (
        f"a turn that stay: {blocks:.1f} blocks of Python's, {malloc:.0f} bytes of malloc's (and {free:+.1f} MB that it"
        f" keeps free); objects: {types}"
    )


def _grew(first: Mapping[str, int], last: Mapping[str, int], turns: int) -> Iterator[str]:
    """Types of which there is one more at least in a hundred turns."""
    rates = {name: (count - first.get(name, 0)) / turns for name, count in last.items()}
    found = sorted(((rate, name) for name, rate in rates.items() if rate >= 0.01), reverse=True)[:_MOST_GREW]
    yield from (f"{name} {rate:.2f}" for rate, name in found)


def _few(points: Sequence[tuple[int, int]], start: int) -> list[tuple[int, int]]:
    counted = [one for one in points if one[0] >= start]
    step = max(1, len(counted) // 6)
    return [points[0], *counted[:-1:step], counted[-1]]


def slope(points: Sequence[tuple[int, int]]) -> float:
    """Bytes a turn, by least squares."""
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else 0.0

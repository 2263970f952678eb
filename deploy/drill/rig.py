"""A whole stack in a home of its own, as a subprocess, and the means to hurt it from outside: pid, signal, hold file,
and points at which a worker announces itself and waits.

Nothing of the product is called here but what a client has too: HTTP, SQL, the provider's control surface.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import httpx
import psycopg
import redis
from psycopg.rows import dict_row

from deploy.drill.provider import Rehearsal

ROOT = Path(__file__).resolve().parents[2]
BOOT_S = 120.0
TERMINAL = ("done", "failed", "cancelled")
Row = dict[str, Any]
T = TypeVar("T")


class DidNotHappen(AssertionError):
    """A fact of other processes that was waited for in vain."""


def until(true: Callable[[], T | None], seconds: float = 10.0, what: str = "the condition") -> T:
    """Poll for a fact of other processes; fails with its name. Returns what `true` returned."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = true()
        if found:
            return found
        time.sleep(0.01)
    raise DidNotHappen(f"{what} did not come true within {seconds:g} s")


def slack() -> float:
    """By how much a bound in seconds is widened: bounds are for a machine with a core for each runnable task."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


@dataclass(slots=True)
class Pause:
    """One point at which the next worker that arrives is held. Disarmed until `arm`."""

    point: str
    folder: Path

    def arm(self) -> None:
        (self.folder / "taken").unlink()

    def pid(self) -> int | None:
        """Who waits there. The name stands before its content, which says that the worker is about to wait."""
        return next((int(p.name) for p in self.folder.iterdir() if p.name.isdigit() and p.read_text()), None)

    def arrived(self, seconds: float = 20.0) -> int:
        return until(self.pid, seconds * slack(), f"a worker at {self.point}")

    def go(self) -> None:
        (self.folder / "go").touch()


@dataclass(slots=True)
class Rig:
    """A running stack."""

    home: Path
    process: subprocess.Popen[bytes]
    http: httpx.Client
    provider: Rehearsal
    _pauses: int = field(default=0)

    # --- what it is ---------------------------------------------------------------------------------------------------

    @property
    def facts(self) -> Row:
        return json.loads((self.home / "stack.json").read_text("utf-8"))

    def pids(self, role: str) -> list[int]:
        return self.facts["pids"].get(role, [])

    def pid(self, role: str) -> int:
        (one,) = self.pids(role)
        return one

    def rows(self, query: str, *params: Any) -> list[Row]:
        with psycopg.connect(self.facts["database_url"], autocommit=True, connect_timeout=5) as connection:
            return connection.cursor(row_factory=dict_row).execute(query.encode(), params).fetchall()

    def one(self, query: str, *params: Any) -> Row:
        (row,) = self.rows(query, *params)
        return row

    def redis(self) -> Any:
        return redis.Redis.from_url(self.facts["redis_url"], socket_timeout=5)  # pyright: ignore[reportUnknownMemberType] - untyped in redis-py

    def log(self, name: str) -> str:
        return (self.home / "logs" / f"{name}.log").read_text("utf-8", "replace")

    def logged(self, event: str) -> list[Row]:
        """Every line of that event in the logs of all processes."""
        found: list[Row] = []
        for path in sorted((self.home / "logs").glob("*.log")):
            for line in path.read_text("utf-8", "replace").splitlines():
                if line.startswith("{") and f'"{event}"' in line:
                    with contextlib.suppress(ValueError):
                        row = json.loads(line)
                        if row.get("event") == event:
                            found.append(row | {"log": path.stem})
        return found

    def of_turn(self, turn: str) -> list[str]:
        """Every log line that names this turn, with its log's name."""
        return [
            f"{path.stem}: {line}"
            for path in sorted((self.home / "logs").glob("*.log"))
            for line in path.read_text("utf-8", "replace").splitlines()
            if turn in line
        ]

    # --- what a client does -------------------------------------------------------------------------------------------

    def session(self, **more: Any) -> str:
        return self.http.post("/v1/sessions", json=more).raise_for_status().json()["id"]

    def send(self, session: str, text: str, **more: Any) -> str:
        answer = self.http.post(f"/v1/sessions/{session}/turns", json={"input": text, **more})
        assert answer.status_code == 202, answer.text
        return answer.json()["turn"]["id"]

    def turn(self, turn: str) -> Row:
        return self.http.get(f"/v1/turns/{turn}").raise_for_status().json()

    def calls(self, turn: str) -> list[Row]:
        found = self.http.get(f"/v1/turns/{turn}/calls").raise_for_status().json()
        return list[Row](found["items"])

    def cancel(self, turn: str) -> None:
        self.http.post(f"/v1/turns/{turn}/cancel", json={}).raise_for_status()

    def ended(self, turn: str, seconds: float = 30.0) -> Row:
        """The turn as the API shows it, once it has ended."""

        def terminal() -> Row | None:
            view = self.turn(turn)
            return view if view["status"] in TERMINAL else None

        return until(terminal, seconds * slack(), f"the end of turn {turn}")

    def all_ended(self, turns: Sequence[str], seconds: float = 60.0) -> list[Row]:
        """Their rows, in the order given, once all have ended. Outages of the database are waited out."""

        def done() -> list[Row] | None:
            time.sleep(0.05)
            try:
                rows = self.rows("select * from turns where id = any(%s::uuid[])", list(turns))
            except psycopg.OperationalError:
                return None
            by_id = {str(row["id"]): row for row in rows}
            return [by_id[t] for t in turns] if all(row["status"] in TERMINAL for row in rows) else None

        try:
            return until(done, seconds * slack(), f"the end of {len(turns)} turns")
        except DidNotHappen as error:
            open_turns = (
                "select status, holder, parked_on, attempts, takeovers, step from turns"
                " where id = any(%s::uuid[]) and status not in ('done', 'failed', 'cancelled')"
            )
            for row in self.rows(open_turns, list(turns)):
                error.add_note(str(row))
            raise

    # --- what hurts it ------------------------------------------------------------------------------------------------

    def kill(self, pid: int, number: signal.Signals = signal.SIGKILL) -> float:
        """Signal a process of this stack. Returns the wall-clock time just before."""
        assert pid in family(self.process.pid), f"{pid} is no process of this stack"
        at = time.time()
        os.kill(pid, number)
        return at

    def freeze(self, role: str, number: signal.Signals = signal.SIGSTOP) -> None:
        """Stop (or continue) a server with all its children: the parent alone would go on being served by them."""
        pid = self.pid(role)
        for one in (pid, *family(pid)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(one, number)

    def thaw(self, role: str) -> None:
        self.freeze(role, signal.SIGCONT)

    @contextlib.contextmanager
    def held_down(self, role: str, number: signal.Signals = signal.SIGKILL) -> Generator[None]:
        """The role's process is gone and does not come back until the end of the block."""
        path = self.home / "hold" / role
        path.touch()
        try:
            pid = self.pid(role)
            self.kill(pid, number)
            until(lambda: pid not in self.pids(role), 30, f"{role} gone")
            yield
        finally:
            path.unlink()
            until(lambda: len(self.pids(role)) == 1, 30, f"{role} back")

    def arm(self, point: str) -> Pause:
        """The next worker that reaches the point is held there, whichever it is: in a stack made for drills."""
        self._pauses += 1
        pauses = self.home / "pauses"
        folder = pauses / f"{self._pauses}"
        folder.mkdir(parents=True)
        link = pauses / f"{self._pauses}.link"
        link.symlink_to(folder)
        link.replace(pauses / point)
        return Pause(point, folder)

    def pause_at(self, point: str) -> Pause:
        """Workers that start from now on know this point, disarmed. Settings come from the home's own file."""
        self._pauses += 1
        folder = self.home / f"pause-{self._pauses}"
        folder.mkdir()
        (folder / "taken").touch()
        path = self.home / "nightshift.toml"
        path.with_suffix(".new").write_text(f'pause_at = "{point}:{folder}"\n', "utf-8")
        path.with_suffix(".new").replace(path)
        return Pause(point, folder)

    # --- workers ------------------------------------------------------------------------------------------------------

    def holder(self, turn: str) -> Row | None:
        """The `workers` row of whoever holds the turn."""
        found = self.rows("select w.* from turns t join workers w on w.boot_id = t.holder where t.id = %s", turn)
        return found[0] if found else None

    def workers_ready(self, count: int, seconds: float = 30.0, *, of_more: bool = False) -> list[Row]:
        """The rows of `count` living workers, each of a process that runs; `of_more`: others may be on their way."""

        def ready() -> list[Row] | None:
            running = set(self.pids("worker"))
            rows = self.rows("select * from workers where kind = 'worker' and stopped_at is null and not draining")
            alive = [row for row in rows if row["pid"] in running]
            heard = [row for row in alive if f"ready {row['boot_id']}" in self._worker_logs()]
            enough = len(heard) >= count if of_more else len(heard) == len(running) == count
            return heard if enough else None

        return until(ready, seconds * slack(), f"{count} workers")

    def replace_worker(self, pid: int) -> Row:
        """Kill it; the row of the one that the supervisor starts in its place."""
        old = set(self.pids("worker"))
        self.kill(pid)
        until(lambda: pid not in self.pids("worker"), 20, "the end of the killed worker")
        found = self.workers_ready(len(old))
        return next(row for row in found if row["pid"] not in old)

    def _worker_logs(self) -> str:
        return "".join(self.log(path.stem) for path in (self.home / "logs").glob("worker*.log"))

    def wait(self, seconds: float = 20.0, **facts: Any) -> None:
        """Until the provider sees it: `inflight`, `calls`, `begun`, `ended`, of one `session` or of all."""
        params = {**facts, "timeout_s": seconds * slack()}
        answer = self.provider.ask("GET", "wait", params=params, timeout=seconds * slack() + 5)
        assert answer.status_code == 200, answer.text

    def script(self, session: str, replies: list[Row] | None = None, **more: Any) -> None:
        self.provider.post("script", {"session": session, **({"replies": replies} if replies else {}), **more})


def family(pid: int) -> set[int]:
    """All living descendants of a process."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            with contextlib.suppress(OSError):
                parent = int((path / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()[1])
                children.setdefault(parent, []).append(int(path.name))
    found: set[int] = set()
    waiting = [pid]
    while waiting:
        for child in children.get(waiting.pop(), []):
            found.add(child)
            waiting.append(child)
    return found


@contextlib.contextmanager
def stack(
    *,
    workers: int = 1,
    concurrency: int = 8,
    schedulers: int = 1,
    beats: int = 1,
    settings: Mapping[str, object] | None = None,
    up: Sequence[str] = ("deploy.main", "up"),
) -> Generator[Rig]:
    """`nightshift up` (or the module `up` with its first arguments) in a new home; `settings` become NIGHTSHIFT_*
    variables of its supervisor."""
    home = Path(tempfile.mkdtemp(prefix="ns-", dir="/tmp"))
    ours = {"HOME": home, "REHEARSAL": 1, "STRICT": 1, **(settings or {})}
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": str(home)}
    env |= {f"NIGHTSHIFT_{name.upper()}": str(value) for name, value in ours.items()}
    command = [
        sys.executable, "-m", *up, "--json", "--workers", str(workers), "--concurrency",
        str(concurrency), "--schedulers", str(schedulers), "--beats", str(beats),
    ]  # fmt: skip
    output = home / "up.log"
    with output.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file, env=env, cwd=ROOT, start_new_session=True)
    try:
        _await_start(home, process, output)
        facts = json.loads((home / "stack.json").read_text("utf-8"))
        headers = {"Authorization": f"Bearer {facts['token']}"}
        with httpx.Client(base_url=facts["url"], headers=headers, timeout=15) as http:
            stand_in = facts["pids"].get("rehearsal", [0])[0]  # none where the stack speaks to a provider that is given
            provider = Rehearsal(facts["provider_url"], stand_in, facts["rehearsal_token"])
            yield Rig(home, process, http, provider)
    finally:
        _stop(process)
        if not os.environ.get("CHAOS_KEEP"):
            shutil.rmtree(home, ignore_errors=True)


def _await_start(home: Path, process: subprocess.Popen[bytes], output: Path) -> None:
    began, bound = time.monotonic(), 0.0
    while not (home / "stack.json").exists():
        bound = max(bound, BOOT_S * slack())  # the load may rise while it starts: a suite starts many
        if process.poll() is not None or time.monotonic() > began + bound:
            raise AssertionError(output.read_text("utf-8", "replace")[-3000:])
        time.sleep(0.02)


def _stop(process: subprocess.Popen[bytes]) -> None:
    """In order; what a test left frozen is woken first."""
    everyone = {pid: _born(pid) for pid in family(process.pid)}
    for pid in everyone:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
    process.terminate()
    try:
        process.wait(3)
    except subprocess.TimeoutExpired:
        process.terminate()  # a second signal ends its patience with each role
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(5)
    for pid, born in everyone.items():
        if born is not None and _born(pid) == born:  # its number may be somebody else's by now
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _born(pid: int) -> str | None:
    """When a process began, in ticks since boot; None where there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()[19]
    except OSError:
        return None

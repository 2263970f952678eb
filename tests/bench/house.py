"""A running stack for benchmarks: one for the whole run, workers started by each figure with the slots it needs."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psycopg

from tests.chaos.rig import Rig, family, stack
from tests.ground import ROOT, until

LIMIT = 1_024
TICK = os.sysconf("SC_CLK_TCK")
SMALL_MODEL = "claude-sonnet-5-5"


def resident(pid: int) -> int:
    """Bytes in memory."""
    return int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


@dataclass(slots=True)
class Worker:
    process: subprocess.Popen[str]

    @property
    def rss(self) -> int:
        """Bytes in memory."""
        return resident(self.process.pid)


@dataclass(slots=True)
class House:
    rig: Rig

    @contextlib.contextmanager
    def workers(
        self, count: int, slots: int, *, program: Sequence[str] = ("deploy.main", "worker"), **settings: object
    ) -> Generator[list[Worker]]:
        """`count` worker processes of so many slots, ready; `program`: the module, and its arguments."""
        facts = self.rig.facts
        ours = {
            "HOME": self.rig.home, "DATABASE_URL": facts["database_url"],
            "DATABASE_DIRECT_URL": facts["database_direct_url"], "REDIS_URL": facts["redis_url"],
            "PROVIDER_BASE_URL": facts["provider_url"], "PROVIDER_KEY": "rehearsal", "REHEARSAL": 1,
            "PRINCIPAL_LIMIT": LIMIT, "SLOTS": slots, **settings,
        }  # fmt: skip
        env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
        env |= {f"NIGHTSHIFT_{name.upper()}": str(value) for name, value in ours.items()}
        started: list[Worker] = []
        try:
            for number in range(count):
                with (self.rig.home / "logs" / f"bench-worker-{number}.log").open("ab") as log:
                    process = subprocess.Popen(
                        [sys.executable, "-m", *program],
                        stdout=subprocess.PIPE, stderr=log, text=True, env=env, cwd=self.rig.home,
                    )  # fmt: skip
                started.append(Worker(process))
            for worker in started:
                assert worker.process.stdout is not None
                line = worker.process.stdout.readline()
                assert "ready" in line, f"a worker did not start: {line}"
            yield started
        finally:
            for worker in started:
                worker.process.terminate()
            for worker in started:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    worker.process.wait(15)
                worker.process.kill()
                worker.process.wait(5)

    def sessions(self, count: int, **more: Any) -> list[str]:
        with ThreadPoolExecutor(4) as pool:
            made = [pool.submit(self.rig.session, **more) for _ in range(count)]
        return [one.result() for one in made]

    def send(self, sessions: Sequence[str], text: str) -> list[str]:
        """A turn to each, by eight clients. Their ids."""
        with ThreadPoolExecutor(8) as pool:
            sent = [pool.submit(self.rig.send, session, text) for session in sessions]
        return [one.result() for one in sent]

    def script(self, **more: Any) -> None:
        """For every session: nine tool calls, then words, at once, unless told otherwise."""
        rule = {"policy": "steps", "steps": 9, "tool": "list_files", "input": {"path": "."}, "text": "Done."}
        self.rig.provider.post("script", rule | more)

    def reset(self) -> None:
        self.rig.provider.reset()

    def running(self, turns: Sequence[str]) -> int:
        """How many of them have not ended."""
        return self.rig.one(
            "select count(*) from turns where id = any(%s::uuid[]) and status not in ('done', 'failed', 'cancelled')",
            list(turns),
        )["count"]

    def wait(self, turns: Sequence[str], seconds: float, every_s: float = 0.02) -> None:
        """Until all have ended; asked over one connection, seldom, so that asking costs the figure nothing."""
        end = time.monotonic() + seconds
        with psycopg.connect(self.rig.facts["database_url"], autocommit=True) as connection:
            query = b"select count(*) from turns where id = any(%s::uuid[]) and finished_at is null"
            while time.monotonic() < end:
                row = connection.execute(query, (list(turns),)).fetchone()
                if row == (0,):
                    break
                time.sleep(every_s)
            else:
                raise AssertionError(f"{len(turns)} turns did not end within {seconds} s")
            failed = connection.execute(
                b"select error_code, count(*) from turns where id = any(%s::uuid[]) and status <> 'done' group by 1",
                (list(turns),),
            ).fetchall()
            assert not failed, f"turns that are not done: {failed}"

    def cpu(self, workers: Sequence[Worker]) -> dict[str, float]:
        """CPU seconds so far, by role, children included."""
        facts = self.rig.facts
        pids = {role: facts["pids"].get(role, []) for role in ("api", "rehearsal", "postgres", "valkey", "scheduler")}
        pids["worker"] = [worker.process.pid for worker in workers]
        return {role: sum(map(_cpu, roots)) for role, roots in pids.items()}

    def count_tokens(self, body: dict[str, Any]) -> int:
        answer = httpx.post(
            f"{self.rig.provider.url}/v1/messages/count_tokens", json=body, timeout=20,
            headers={"x-api-key": "bench", "anthropic-version": "2023-06-01"},
        )  # fmt: skip
        return answer.raise_for_status().json()["input_tokens"]


def _cpu(pid: int) -> float:
    total = 0
    for one in (pid, *family(pid)):
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{one}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
            total += sum(map(int, fields[11:15] if one == pid else fields[11:13]))
    return total / TICK


@contextlib.contextmanager
def house() -> Generator[House]:
    """A stack without workers: each figure starts its own."""
    settings = {"PRINCIPAL_LIMIT": LIMIT, "LOG_LEVEL": "warning", "STRICT": 0}
    with stack(workers=0, settings=settings) as rig:
        until(lambda: rig.http.get("/healthz").status_code == 200, 20, "the API")
        yield House(rig)

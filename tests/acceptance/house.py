"""Whole stacks for acceptance: in a home that can be started again, from this tree or from a changed copy of it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from deploy.drill import rig
from tests.chaos.rig import Rig, slack
from tests.ground import ROOT, Rehearsal, until

ROOMS = ("api", "deploy", "scheduler", "shared", "workers")
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Fleet:
    """How many of each process."""

    workers: int = 1
    concurrency: int = 8
    schedulers: int = 1
    beats: int = 1

    def options(self) -> list[str]:
        pairs = (("workers", self.workers), ("schedulers", self.schedulers), ("beats", self.beats))
        named = [("concurrency", self.concurrency), *pairs]
        return [word for name, count in named for word in (f"--{name}", str(count))]


@contextlib.contextmanager
def up(
    home: Path,
    fleet: Fleet,
    *,
    tree: Path = ROOT,
    settings: Mapping[str, object] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Generator[Rig]:
    """`nightshift up` in that home, which stays when it ends. `settings` become NIGHTSHIFT_* variables."""
    home.mkdir(parents=True, exist_ok=True)
    ours = {"HOME": home, "STRICT": 1, **(settings or {})}
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(tree), "HOME": str(home), **(environment or {})}
    env |= {f"NIGHTSHIFT_{name}": str(value) for name, value in ours.items()}
    output = home.parent / f"{home.name}-{time.monotonic_ns()}.log"
    command = [sys.executable, "-m", "deploy.main", "up", "--json", *fleet.options()]
    with output.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file, env=env, cwd=tree, start_new_session=True)
    try:
        rig._await_start(home, process, output)
        facts = json.loads((home / "stack.json").read_text("utf-8"))
        pid = facts["pids"].get("rehearsal", [0])[0]
        provider = Rehearsal(facts["provider_url"], pid, facts["rehearsal_token"])
        with client(facts["url"], facts["token"]) as http:
            yield Rig(home, process, http, provider)
    finally:
        rig._stop(process)


def client(url: str, token: str) -> httpx.Client:
    return httpx.Client(base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=30)


def copy_tree(target: Path, edits: Mapping[str, tuple[str, str]]) -> Path:
    """The product's rooms at `target`, with `old` replaced by `new` in the files named. An edit that changes nothing
    is an error: what it was to prove would be proved by the unchanged tree."""
    leave = shutil.ignore_patterns("__pycache__")
    for room in ROOMS:
        shutil.copytree(ROOT / room, target / room, ignore=leave)
    for name, (old, new) in edits.items():
        path = target / name
        text = path.read_text("utf-8")
        assert old in text, f"{name} does not hold {old!r}"
        path.write_text(text.replace(old, new), "utf-8")
    return target


def run_job(stack: Rig, name: str, prompt: str, *, seconds: float = 60.0, **more: Any) -> Row:
    """Add a job, let it run now, and give its run once that has ended: through tick, claim and delivery."""
    made = stack.http.post("/v1/jobs", json={"name": name, "cron": "0 0 1 1 *", "prompt": prompt, **more})
    assert made.status_code == 201, made.text
    job = made.json()["id"]
    asked = stack.http.post(f"/v1/jobs/{job}/run", json={})
    assert asked.status_code == 202, asked.text
    return run_ended(stack, job, asked.json()["id"], seconds)


def run_ended(stack: Rig, job: str, run: str, seconds: float = 60.0) -> Row:
    """The run as the API shows it once it and all its deliveries have ended."""

    def over() -> list[Row]:
        rows = stack.http.get(f"/v1/jobs/{job}/runs").raise_for_status().json()["items"]
        (row,) = [row for row in rows if row["id"] == run]
        told = row["status"] != "done" or row["deliveries"]
        ended = row["status"] in ("done", "failed", "cancelled", "skipped") and told
        return [row] if ended and all(one["status"] in ("done", "failed") for one in row["deliveries"]) else []

    return until(over, seconds * slack(), f"the end of run {run}")[0]


def capture(provider: Rehearsal, folder: Path) -> Path:
    """From now on each request body is kept there."""
    folder.mkdir(parents=True, exist_ok=True)
    provider.post("capture", {"directory": str(folder)})
    return folder


def forget_scripts(stack: Rig) -> None:
    """Scripts of one module are not to answer the next one's turns. Calls and their numbers stay."""
    stack.provider.ask("DELETE", "script").raise_for_status()


def bodies(folder: Path, session: str) -> list[bytes]:
    """The captured bodies of a session, in the order in which they came."""
    return [path.read_bytes() for path in sorted(folder.glob(f"[0-9]*-{session}.json"))]


def refused(answer: httpx.Response, status: int, code: str) -> str:
    """The sentence of a refusal; it is a problem with that status and code."""
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    problem = answer.json()
    assert (answer.status_code, problem["status"], problem["code"]) == (status, status, code), problem
    assert problem["detail"][-1] not in ":,"
    return problem["detail"]

"""Owns the stack that a demo runs on: its own, started and stopped here, or the one that already runs in this home."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deploy.local.explain import StackError
from deploy.local.home import Home, lock_holder, open_home
from deploy.local.logs import readable
from deploy.local.servers import tail

ROOT = Path(__file__).resolve().parents[2]
START_PATIENCE_S = 180.0
STOP_PATIENCE_S = 60.0
FLEET = ("--workers", "1", "--concurrency", "4")
LAST_LINES = 8


@dataclass(frozen=True, slots=True)
class Stack:
    facts: dict[str, Any]
    home: Path
    is_ours: bool
    pid: int
    started_s: float

    @property
    def is_rehearsal(self) -> bool:
        return bool(self.facts.get("rehearsal"))

    @property
    def logs(self) -> Path:
        return Path(str(self.facts.get("logs") or self.home / "logs"))


@contextmanager
def running(path: Path, *, keep: bool) -> Generator[Stack]:
    """A stack that serves. It stops afterwards, unless it is to be kept or was there before. Raises StackError."""
    home = open_home(path)
    if lock_holder(home.root) is not None:
        yield _found(home)
        return
    began = time.monotonic()
    process = _start(home, keep=keep)
    try:
        facts = _await_ready(process, home)
        yield Stack(facts, home.root, is_ours=True, pid=process.pid, started_s=time.monotonic() - began)
    except BaseException:
        _stop(process)
        raise
    if not keep:
        _stop(process)


def _found(home: Home) -> Stack:
    try:
        facts: dict[str, Any] = json.loads(home.stack_file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise StackError(f"A stack is starting or stopping in {home.root}: try again in a moment.") from error
    return Stack(facts, home.root, is_ours=False, pid=lock_holder(home.root) or 0, started_s=0.0)


def _start(home: Home, *, keep: bool) -> subprocess.Popen[bytes]:
    """The supervisor ends with its parent, except where SIGHUP is ignored: so a kept stack is started that way."""
    before = signal.getsignal(signal.SIGHUP)
    if keep:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with (home.logs / "supervisor.log").open("wb") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "deploy.main", "dev-up", "--json", *FLEET],
                cwd=ROOT,
                env={**os.environ, "NIGHTSHIFT_HOME": str(home.root), "PYTHONPATH": str(ROOT)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,  # Ctrl-C reaches us alone, and we stop it in order
            )
    finally:
        signal.signal(signal.SIGHUP, before)


def _await_ready(process: subprocess.Popen[bytes], home: Home) -> dict[str, Any]:
    assert process.stdout is not None
    deadline = time.monotonic() + START_PATIENCE_S
    said = b""
    while not said.endswith(b"\n"):
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([process.stdout], [], [], left)[0]:
            raise StackError(f"The stack was not ready within {START_PATIENCE_S:.0f} s.")
        piece = os.read(process.stdout.fileno(), 65_536)
        if not piece:
            process.wait(STOP_PATIENCE_S)
            raise StackError(_why(home, process.returncode))
        said += piece
    process.stdout.close()
    return json.loads(said)


def _why(home: Home, code: int) -> str:
    lines = tail(home.logs / "supervisor.log", LAST_LINES)
    told = "\n".join(f"    {readable(line)}" for line in lines)
    return f"The stack did not start (exit {code}). It said:\n{told}"


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(STOP_PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()  # its children are tied to its life
        process.wait(10)


def last_words(logs: Path) -> list[str]:
    """The last lines of each process of ours, for a person who wants to know why."""
    lines: list[str] = []
    for name in ("api", "worker", "scheduler", "beat", "rehearsal", "supervisor"):
        for file in sorted(logs.glob(f"{name}*.log")):
            lines += [f"{file.stem:<11}| {readable(line)}" for line in tail(file, LAST_LINES)]
    return lines

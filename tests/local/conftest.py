"""A short home for each test, and supervisors that end with it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path

import pytest

from deploy.local import processes

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def hangups() -> Generator[None]:
    """SIGHUP is heard: a suite that was begun under `nohup` ignores it, and so would all that it starts."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.fixture
def folder() -> Generator[Path]:
    """Short enough for sockets inside; pytest's own folders may not be."""
    path = Path(tempfile.mkdtemp(prefix="ns-"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


@dataclass(slots=True)
class Rig:
    home: Path
    process: subprocess.Popen[str]

    def pids(self) -> dict[str, list[int]]:
        try:
            return json.loads((self.home / "stack.json").read_text())["pids"]
        except FileNotFoundError:
            return {}

    def is_ready(self) -> bool:
        try:
            return bool(json.loads((self.home / "stack.json").read_text())["ready"])
        except FileNotFoundError:
            return False

    def wait_ready(self) -> Rig:
        assert processes.wait_until(lambda: self.is_ready() or self.process.poll() is not None, 30)
        assert self.process.poll() is None, self.said()
        return self

    def new_pid(self, role: str, old: int, seconds: float) -> int:
        """The pid that takes the place of `old`."""

        def replaced() -> bool:
            now = self.pids().get(role, [])
            return bool(now) and now[0] != old

        assert processes.wait_until(replaced, seconds), f"{role} was not started again within {seconds} s"
        return self.pids()[role][0]

    def events(self) -> list[str]:
        try:
            return (self.home / "events").read_text().splitlines()
        except FileNotFoundError:
            return []

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(60)

    def said(self) -> str:
        """What stood on the terminal; waits for the end."""
        return self.process.communicate(timeout=60)[1]


RigStarter = Callable[..., Rig]


def rig_command(home: Path, *words: str) -> list[str]:
    return [sys.executable, "-m", "tests.local.rig", str(home), *words]


@pytest.fixture
def start_rig(folder: Path) -> Generator[RigStarter]:
    started: list[Rig] = []

    def start(*words: str, home: Path | None = None) -> Rig:
        where = home or folder / "home"
        process = subprocess.Popen(
            rig_command(where, *words),
            cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip
        started.append(Rig(where, process))
        return started[-1]

    yield start
    for rig in started:
        if rig.process.poll() is None:
            rig.process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                rig.process.communicate(timeout=30)
        if rig.process.poll() is None:
            rig.process.kill()
        if rig.process.stderr is not None:
            rig.process.stderr.close()
        rig.process.wait()

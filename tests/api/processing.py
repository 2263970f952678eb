"""The API as a process of its own, over servers of its own that a test may hurt."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.ground import ROOT


@dataclass(slots=True)
class Process:
    """A running API. `url` is what its ready line said."""

    process: subprocess.Popen[str]
    url: str

    def stop(self, number: int = signal.SIGTERM, patience: float = 12.0) -> int:
        self.process.send_signal(number)
        return self.process.wait(patience)


def environment(**settings: str) -> dict[str, str]:
    names = {f"NIGHTSHIFT_{name.upper()}": value for name, value in settings.items()}
    return {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **names}


@contextlib.contextmanager
def process(**settings: str) -> Generator[Process]:
    running = subprocess.Popen(
        [sys.executable, "-m", "api.server"], env=environment(**settings), cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    try:
        assert running.stdout is not None
        line = running.stdout.readline()
        assert line.startswith("nightshift api ready http://127.0.0.1:"), line
        yield Process(running, line.split()[-1])
    finally:
        if running.poll() is None:
            running.kill()
        running.wait(10)


def tree(pid: int) -> Iterator[int]:
    """A process and all its children: stopping a postmaster alone leaves its backends at work."""
    yield pid
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in children.read_text().split():
            yield from tree(int(child))


@contextlib.contextmanager
def frozen(pid: int) -> Generator[None]:
    """A process and its children stopped, for the length of a `with`."""
    stopped = list(tree(pid))
    for one in stopped:
        os.kill(one, signal.SIGSTOP)
    try:
        yield
    finally:
        for one in stopped:
            with contextlib.suppress(ProcessLookupError):
                os.kill(one, signal.SIGCONT)

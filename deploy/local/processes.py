"""Owns questions about processes that others may have started: alive, which program, which folder; and ending them."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

_PROC = Path("/proc")


def is_alive(pid: int) -> bool:
    """True while the process runs; a zombie has ended, whoever still has to collect it."""
    if not is_counted(pid):
        return False
    try:
        return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] not in {"Z", "X"}
    except (OSError, IndexError):
        return not _PROC.is_dir()


def is_counted(pid: int) -> bool:
    """True while the kernel knows the number at all: a zombie too, which others take for alive."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def command_line(pid: int) -> tuple[str, ...]:
    """The arguments of a live process, or nothing. A pid alone proves nothing: numbers are used again."""
    try:
        return tuple(os.fsdecode(part) for part in (_PROC / str(pid) / "cmdline").read_bytes().split(b"\0") if part)
    except OSError:
        if _PROC.is_dir():
            return ()
    done = subprocess.run(
        ["/bin/ps", "-ww", "-o", "command=", "-p", str(pid)], capture_output=True, text=True, timeout=5, check=False
    )
    return tuple(done.stdout.split())


def folder_of(pid: int) -> Path | None:
    try:
        return (_PROC / str(pid) / "cwd").readlink()
    except OSError:
        return None


def inhabitants(folder: Path) -> tuple[int, ...]:
    """Every process whose current folder is this one: how the backends of a dead postmaster are found."""
    wanted = folder.resolve()
    numbers = (int(entry.name) for entry in _PROC.glob("[0-9]*")) if _PROC.is_dir() else iter(())
    return tuple(pid for pid in numbers if pid != os.getpid() and folder_of(pid) == wanted)


def wait_until(condition: Callable[[], bool], seconds: float, step: float = 0.01) -> bool:
    """Ask again and again, at most for `seconds`; the last answer counts."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() >= deadline:
            return False
        time.sleep(step)
    return True


def send(pid: int, number: signal.Signals) -> None:
    """A signal to a process that may be gone already."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def end(pid: int, steps: Sequence[tuple[signal.Signals, float]]) -> bool:
    """Signals in order of force, each with its patience; True when the process has ended."""
    for number, patience in steps:
        send(pid, number)
        send(pid, signal.SIGCONT)  # a frozen process obeys only once it runs again
        if wait_until(lambda: not is_alive(pid), patience):
            return True
    return False

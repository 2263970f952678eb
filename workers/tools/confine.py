"""What a child may still do: memory, time and files are bounded; on Linux, Landlock closes files and the network.

Called in the forked, single-threaded child just before its work, and cannot be taken back.
"""

from __future__ import annotations

import ctypes
import resource
import signal
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from shared.sandbox import landlock

_PR_SET_PDEATHSIG = 1


def limit(*, memory_bytes: int, cpu_seconds: int, wall_seconds: float) -> None:
    """Bounds that hold even if nobody is left to kill this process: the timer survives exec and ends it by SIGALRM."""
    wanted = (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NOFILE, 256),
        (resource.RLIMIT_CPU, cpu_seconds),
        (resource.RLIMIT_AS, memory_bytes),
    )
    for name, value in wanted:
        with suppress(OSError, ValueError):  # macOS knows no bound on address space
            resource.setrlimit(name, (value, value))
    end_after(wall_seconds)


def end_after(wall_seconds: float) -> None:
    """This process is ended by SIGALRM then, whatever it does."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, wall_seconds)


def die_with_parent() -> None:
    """On Linux this process is killed when its launcher goes; elsewhere its time bound ends it."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def landlock_version() -> int:
    """The kernel's Landlock version, 0 where there is none."""
    return landlock.version()


def seal(
    *,
    folders: Iterable[int] = (),
    readable: Iterable[str] = (),
    executable: Iterable[str] = (),
    network: bool = False,
) -> bool:
    """From here on only `folders` (descriptors) and `readable` (paths) are read, only the files `executable` run, and
    nothing but the null device is written; TCP only with `network`. A second seal takes away more and gives nothing
    back.

    False, and nothing changed, where the kernel has no Landlock. Raises OSError if it has and refuses.
    """
    rules = landlock.Rules(folders=folders, readable=readable, executable=executable, network=network)
    return landlock.seal(rules)


def loaders() -> list[str]:
    """The programs that the kernel runs to load others; without them nothing dynamically linked starts."""
    patterns = ("lib/ld-*.so*", "lib64/ld-*.so*", "lib/*/ld-*.so*", "usr/lib/*/ld-*.so*")
    return [str(path.resolve()) for pattern in patterns for path in Path("/").glob(pattern)]

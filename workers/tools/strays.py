"""What a job left running: processes that gave up their group and their parent, met again by their descent.

On Linux the launcher adopts every descendant whose parent is gone (a subreaper). So what is its child and no job of
its own was left behind by a job that is over. Elsewhere there is no such adoption, and a job's group is all there is.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36


def adopt() -> None:
    """From here on a descendant that loses its parent becomes a child of this process, or of a nearer one like it."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end(jobs: Collection[int]) -> bool:
    """Kill this process's children that are none of `jobs`. Whether there were any: what those had started turns up
    here once they are reaped, so look again until there are none."""
    left = [pid for pid in _children() if pid not in jobs]
    for pid in left:
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    return bool(left)


def _children() -> list[int]:
    """Of this process, as /proc has them; the ready list of the kernel is not compiled in everywhere."""
    own = os.getpid()
    try:
        names = [path.name for path in Path("/proc").iterdir()]
    except OSError:
        return []
    return [int(name) for name in names if name.isdigit() and _parent(name) == own]


def _parent(name: str) -> int:
    """0 where the process is gone by now. Its own name may hold spaces and brackets: the last bracket ends it."""
    try:
        return int(Path(f"/proc/{name}/stat").read_bytes().rpartition(b")")[2].split()[1])
    except (OSError, IndexError, ValueError):
        return 0

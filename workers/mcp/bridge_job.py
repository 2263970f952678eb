"""In a child of the launcher: this process becomes a bridge. Whatever a server leaves running ends with it."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

_ROOM = str(Path(__file__).resolve().parents[2])
_BOOT = "import sys; sys.path.insert(0, sys.argv[1]); from workers.mcp.bridge import main; main(int(sys.argv[2]))"


def become(job: socket.socket) -> int:
    """The bridge on `job`, with nothing in its environment; an exit code where that cannot be."""
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.set_inheritable(job.fileno(), True)
    program = [sys.executable, "-I", "-X", "utf8", "-c", _BOOT, _ROOM, str(job.fileno())]
    try:
        os.execve(sys.executable, program, {})  # noqa: S606 - no shell is wanted
    except OSError:
        return 1

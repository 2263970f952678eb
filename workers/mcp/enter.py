"""In the process that is about to become a tool server: what it must not have of ours.

It runs as the worker's user, to whom the kernel would show the worker's memory, its open files and the environment
that it was started with. Behind Landlock a server reaches no process but its own in /proc, and sends no signal to one
outside, be it root. Files stay as they are: it is the operator's program, with caches and settings of its own.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from pathlib import Path

from shared.sandbox import landlock
from workers.tools import confine

_OF_THE_MACHINE = (
    "cpuinfo", "meminfo", "stat", "loadavg", "uptime", "version", "filesystems", "sys", "net", "cgroups", "mounts",
)  # fmt: skip
"""What programs look up in /proc that is of nobody."""


def main(command: list[str]) -> None:
    """Become that program. Does not come back."""
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))  # the bridge's own bound is not the server's
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    confine.die_with_parent()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    wall_off()
    try:
        os.execvp(command[0], command)  # noqa: S606 - no shell is wanted
    except OSError as error:
        sys.exit(f"{command[0]}: {error.strerror}")


def wall_off() -> bool:
    """From here on all below / is as it was but for other processes. False where the kernel has no Landlock."""
    folders = [path for path in Path("/").iterdir() if path.is_dir() and path.name != "proc"]
    own = [f"/proc/{os.getpid()}", *(f"/proc/{name}" for name in _OF_THE_MACHINE)]
    opened = [os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC) for path in folders]
    return landlock.seal(landlock.Rules(owned=opened, readable=own, network=True))

"""In a child: the last look at a stranger's repository, then this process becomes git and can read nothing else."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path
from typing import Any

from shared.boottime import boottime
from workers.tools import confine

NO_REPOSITORY, ODD_REPOSITORY, BORROWS, CANNOT_RUN, TOO_LATE = 10, 11, 12, 13, 14
"""Exit codes of the child before it is git; git itself ends with 1, 128 or 129."""

_SYSTEM = ("/usr", "/lib", "/lib64", "/etc/ld.so.cache")
_PLAIN = ("objects", "objects/info", "objects/pack", "refs", "HEAD", "config", "packed-refs", "logs", "info")


def become(job: socket.socket, request: dict[str, Any], fds: list[int], begin_by: float) -> int:
    """Git in the folder `fds[0]`, its output on `job`, its complaints on `fds[1]`; an exit code if that cannot be."""
    root, complaints = fds
    os.fchdir(root)
    odd = _judge()
    if odd:
        return odd
    program = Path(str(request["program"]))
    confine.seal(
        folders=[root],
        readable=[*_SYSTEM, str(program.parent)],
        executable=[str(program), *confine.loaders()],
    )
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(job.fileno(), 1)
    os.dup2(complaints, 2)
    if boottime() >= begin_by:
        return TOO_LATE
    try:
        os.execve(program, list(request["arguments"]), dict(request["environment"]))  # noqa: S606 - no shell is wanted
    except OSError:
        return CANNOT_RUN


def _judge() -> int:
    """0 for an ordinary `.git` folder here that keeps all its objects itself.

    A `.git` file or link, a `commondir` or an `alternates` names another folder as (part of) the repository, and git
    would read that. Where Landlock holds, what is swapped in after this look is out of reach too.
    """
    repository = Path(".git")
    try:
        mode = repository.lstat().st_mode
    except OSError:
        return NO_REPOSITORY
    if not stat.S_ISDIR(mode):
        return ODD_REPOSITORY
    if any(os.path.lexists(repository / name) for name in ("commondir", "objects/info/alternates")):
        return BORROWS
    return ODD_REPOSITORY if any((repository / name).is_symlink() for name in _PLAIN) else 0

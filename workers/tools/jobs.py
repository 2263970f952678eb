"""What a forked child does: one request, one answer, in a process that can do little else and is gone afterwards."""

from __future__ import annotations

import json
import os
import socket
import stat
import sys
import sysconfig
import time
from typing import Any

from workers.tools import confine

_MOST_REQUEST = 1 << 20
_MEGABYTE = 1 << 20
_MEMORY = 768 * _MEGABYTE
_GIT_MEMORY = 2048 * _MEGABYTE
_GRACE_S = 2.0
NO_REPOSITORY, ODD_REPOSITORY, BORROWS, CANNOT_RUN = 10, 11, 12, 13


def warm() -> None:
    """Imports in the launcher what its children use: they start in a millisecond, and could not read it once sealed."""
    from workers.tools import rendered, search_job

    rendered.warm()
    search_job.warm()


def run(job: socket.socket) -> int:
    """Answers the request that comes on `job`; the exit code is 0 when the answer is whole."""
    request, fds = _receive(job)
    seconds = float(request["seconds"])
    confine.die_with_parent()
    is_git = request["job"] == "git"
    confine.limit(
        memory_bytes=_GIT_MEMORY if is_git else _MEMORY,
        cpu_seconds=int(seconds) + 2,
        wall_seconds=seconds + _GRACE_S,
    )
    if is_git:
        return _git(job, request, fds)
    confine.seal(folders=fds if request["job"] == "search" else (), readable=_python_folders())
    from workers.tools import render_job, search_job

    until = time.monotonic() + seconds * 0.8
    work = search_job.search if request["job"] == "search" else render_job.render
    answer = work(request, fds, lambda: time.monotonic() >= until)
    job.sendall(json.dumps(answer).encode())
    return 0


def _receive(job: socket.socket) -> tuple[dict[str, Any], list[int]]:
    head, fds, _, _ = socket.recv_fds(job, 4, 4)
    length = int.from_bytes(head, "big")
    if len(head) < 4 or length > _MOST_REQUEST:
        raise ConnectionError("no whole request")
    data = bytearray()
    while len(data) < length:
        piece = job.recv(length - len(data))
        if not piece:
            raise ConnectionError("no whole request")
        data += piece
    return json.loads(data), fds


def _python_folders() -> list[str]:
    paths = sysconfig.get_paths()
    return ["/usr/share/zoneinfo", *{paths["stdlib"], paths["purelib"], paths["platlib"], sys.base_prefix + "/lib"}]


def _git(job: socket.socket, request: dict[str, Any], fds: list[int]) -> int:
    """Becomes git in the folder `fds[0]`, its output on the job's socket and its complaints on `fds[1]`."""
    root, complaints = fds
    os.fchdir(root)
    odd = _judge_repository()
    if odd:
        return odd
    program = str(request["program"])
    confine.seal(
        folders=[root],
        readable=["/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/dev/null", os.path.dirname(program)],
        executable=[program, *confine.loaders()],
    )
    os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
    os.dup2(job.fileno(), 1)
    os.dup2(complaints, 2)
    try:
        os.execve(program, list(request["arguments"]), dict(request["environment"]))
    except OSError:
        return CANNOT_RUN


def _judge_repository() -> int:
    """0 for an ordinary `.git` folder here that keeps all its objects itself.

    A `.git` file or link, a `commondir` or an `alternates` names another folder as (part of) the repository; git
    would read that. Where Landlock holds, what is swapped in after this look is out of reach too.
    """
    try:
        mode = os.stat(".git", follow_symlinks=False).st_mode
    except OSError:
        return NO_REPOSITORY
    if not stat.S_ISDIR(mode):
        return ODD_REPOSITORY
    if any(os.path.lexists(f".git/{name}") for name in ("commondir", "objects/info/alternates")):
        return BORROWS
    links = ("objects", "objects/info", "objects/pack", "refs", "HEAD", "config", "packed-refs", "logs", "info")
    return ODD_REPOSITORY if any(os.path.islink(f".git/{name}") for name in links) else 0

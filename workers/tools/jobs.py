"""What a forked child does: one request, one answer, in a process that can do little else and is gone afterwards."""

from __future__ import annotations

import json
import os
import socket
import sys
import sysconfig
import time
from contextlib import suppress
from typing import Any

from shared.boottime import boottime
from workers.mcp import bridge_job
from workers.sandbox import box_job
from workers.tools import confine, git_job, render_job, rendered, search_job

_MOST_REQUEST = 1 << 20
_MEMORY = 768 << 20
_GIT_MEMORY = 2048 << 20
_GRACE_S = 2.0
"""For the worker to be first, which says why. A job that acts has none: others were told until when it may."""
_LEAST_S = 0.05  # a timer of nothing is none
_SOFT = 0.8
"""The part of its time after which a job stops by itself and tells what it has."""


def warm() -> None:
    """Uses everything once in the launcher: its children start at once, and when sealed could load nothing more."""
    rendered.warm()
    search_job.warm()


def run(job: socket.socket, begin_by: float) -> int:
    """Answers the request that comes on `job`; the exit code is 0 when the answer is whole. Another program is not
    begun after `begin_by` (of `boottime`), however long this process stood still on its way there."""
    request, fds = _receive(job)
    for fd in fds:  # a job that is asked again gets the same open files, read as far as its dead predecessor came
        with suppress(OSError):
            os.lseek(fd, 0, os.SEEK_SET)
    seconds, wall_seconds = bounds(float(request["until"]), boottime(), acts=bool(request["acts"]))
    kind = str(request["job"])
    if kind == "mcp":
        return bridge_job.become(job)
    if kind == "box":
        confine.end_after(wall_seconds)
        return box_job.supervise(job, request, fds, begin_by)
    confine.limit(
        memory_bytes=_GIT_MEMORY if kind == "git" else _MEMORY,
        cpu_seconds=int(seconds) + 2,
        wall_seconds=wall_seconds,
    )
    if kind == "git":
        return git_job.become(job, request, fds, begin_by)
    if kind == "web":
        from workers.web import job as web_job  # noqa: PLC0415 - of a child that fetches, alone

        job.sendall(json.dumps(web_job.work(request, _python_folders(), seconds * _SOFT)).encode())
        return 0
    confine.seal(folders=fds if kind == "search" else (), readable=_python_folders())
    work = search_job.search if kind == "search" else render_job.render
    until = time.monotonic() + seconds * _SOFT
    answer = work(request, fds, lambda: time.monotonic() >= until)
    job.sendall(json.dumps(answer).encode())
    return 0


def bounds(until: float, now: float, *, acts: bool) -> tuple[float, float]:
    """How long it may work, and after how many seconds it is ended by its own clock though nobody is left to end it:
    however late it began, one that acts is over when others were told that it is."""
    seconds = max(_LEAST_S, until - now)
    return seconds, seconds if acts else seconds + _GRACE_S


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
    """Where Python keeps its modules and time zones: they hold nothing of anybody."""
    paths = sysconfig.get_paths()
    return ["/usr/share/zoneinfo", *{paths["stdlib"], paths["purelib"], paths["platlib"], sys.base_prefix + "/lib"}]

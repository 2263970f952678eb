"""The supervisor of one run, in a child of the launcher: begins it behind the wall, passes its output on, ends it.

It outlives nothing: when its worker closes the socket the launcher kills it, and what it began dies with it. What the
run may not have changed is as it was before, or told, when the end is told.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from shared.boottime import boottime
from shared.sandbox import trial
from shared.sandbox.box import OWNER, Bounds, Box, Kept
from shared.sandbox.enter import is_root, spawn
from shared.sandbox.tiers import Tier, Way, way_of
from workers.sandbox import doorway, ground, proxy, steers, watch
from workers.sandbox.frames import Kind, encode
from workers.sandbox.watch import SLACK, Disk
from workers.tools import strays
from workers.tools.places import CHILDREN, INPUT
from workers.web import target
from workers.web.target import Reach

_PIECE = 65_536
_MOST_KEPT = 400
_MOST_COVERED = 60
_LOOK_EVERY_S = 0.1
_END_S = 5.0
_EMPTY_LIST: list[str] = []


class Refused(Exception):
    """The run was not begun; the words are for the model."""


@dataclass(frozen=True, slots=True)
class _Ended:
    code: int
    why: str | None


def supervise(job: socket.socket, request: dict[str, Any], fds: list[int], begin_by: float) -> int:
    """Does the request and tells it in frames. Not begun after `begin_by` (of `boottime`)."""
    began = time.monotonic()
    told: dict[str, Any]
    try:
        told = _whole(job, request, fds, begin_by)
    except Refused as refused:
        told = {"refused": str(refused)}
    except ground.TooMuch:
        told = {"refused": f"the workspace has more than {ground.MOST_BEFORE:,} entries: too many to look through"}
    told["seconds"] = round(time.monotonic() - began, 3)
    job.sendall(encode(Kind.END, json.dumps(told).encode()))
    return 0


def _whole(job: socket.socket, request: dict[str, Any], fds: list[int], begin_by: float) -> dict[str, Any]:
    way = way_of(request["way"])
    workspace, *others = fds
    attached = others.pop(0) if request["attached"] else None
    before = ground.look(workspace, steers.steers, owner=OWNER if is_root() else None, past=_children(way))
    made = _box(way, request, workspace, attached, others, before)
    scratch = _scratch(way)
    try:
        if boottime() >= begin_by:
            return {"late": True}
        reach = target.reach(*request["reach"])
        disk = _disk(way, workspace, scratch, before, made.bounds)
        ended = _run(job, way, made, scratch, float(request["seconds"]), int(request["most"]), reach, disk)
    finally:
        if scratch:
            shutil.rmtree(scratch, ignore_errors=True)
    told: dict[str, Any] = {"code": ended.code, "why": ended.why}
    try:
        told["taken_back"], told["differs"] = ground.take_back(workspace, before, steers.steers)
    except ground.TooMuch:
        told["differs"] = ["(more entries than can be looked through)"]
    return told


def _children(way: Way) -> str | None:
    """What children work on is theirs: no run of their parent's changes it, so none puts anything back in it. Behind
    the weaker wall it can be written, and so is looked into."""
    return CHILDREN if way.tier is Tier.ISOLATED else None


def _scratch(way: Way) -> str:
    """Where nothing is mounted, a run's own folder is one of this host."""
    if way.tier is not Tier.CONFINED:
        return ""
    scratch = tempfile.mkdtemp(prefix="nightshift-run-")
    os.chown(scratch, OWNER, OWNER)
    return scratch


# --- what it sees ----------------------------------------------------------------------------------------------------


def _box(
    way: Way, request: dict[str, Any], workspace: int, attached: int | None, passed: list[int], before: ground.Look
) -> Box:
    command = [str(word) for word in request["command"]]
    python = None
    if request["python"]:
        python = os.open(way.python_folder, os.O_PATH) if way.python_folder else None
        command = [*trial.interpreter(way.python, way.python_folder), *command]
    box = Box(
        tuple(word.replace("{fd}", str(passed[0])) if passed else word for word in command),
        workspace,
        python=python,
        passed=tuple(passed),
        network=bool(request["reach"][1]) and way.tier is Tier.ISOLATED,
        bounds=Bounds(**request["bounds"]),
    )
    if way.tier is Tier.CONFINED:
        if before.closed or attached is not None:
            raise Refused("the tier confined cannot cover folders: what is attached is for the reading tools alone")
        return box
    folders, files = _covered(before, attached)
    return replace(
        box,
        attached=_attached(workspace, attached),
        kept=_kept(workspace, before),
        covered=folders,
        blank=files,
    )


def _attached(workspace: int, attached: int | None) -> int | None:
    if attached is not None and not ground.mount_point(workspace, "input"):
        raise Refused("input/ is taken by something of the workspace that is no folder; move that away")
    return attached


def _kept(workspace: int, before: ground.Look) -> tuple[Kept, ...]:
    """What stays as it is: files that steer, and what children work on. A link cannot be mounted over: it is looked at
    again afterwards."""
    paths = ["/".join(parts) for parts in before.guarded]
    if len(paths) > _MOST_KEPT:
        raise Refused(
            f"the workspace has {len(paths):,} places that steer later work; at most {_MOST_KEPT} are guarded"
        )
    kept = [Kept(path, os.open(path, os.O_PATH | os.O_NOFOLLOW, dir_fd=workspace)) for path in paths]
    if before.passed_over:
        kept.append(Kept(CHILDREN, os.open(CHILDREN, ground.FOLDER, dir_fd=workspace)))
    return tuple(kept)


def _covered(before: ground.Look, attached: int | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Folders that are nobody's to read; and, of what is attached, what is a way out of a folder that is read-only."""
    folders, files = list(before.closed), _EMPTY_LIST
    if attached is not None:
        try:
            theirs = ground.look(attached, None)
        except ground.TooMuch as error:
            raise Refused(
                f"the attached folder has more than {ground.MOST_BEFORE:,} entries: too many to look through before a "
                "command may see it; the reading tools can"
            ) from error
        folders += [f"{INPUT}/{path}" for path in theirs.closed]
        files = [f"{INPUT}/{path}" for path in theirs.odd]
    if len(folders) + len(files) > _MOST_COVERED:
        raise Refused("the folder holds too much that must be covered (states of services, pipes, sockets)")
    return tuple(folders), tuple(files)


def _disk(way: Way, workspace: int, scratch: str, before: ground.Look, bounds: Bounds) -> Disk:
    """What the run may still write: into the workspace, and into its own folder where that is one of this host."""
    past = _children(way)
    own = [os.open(scratch, ground.FOLDER)] if scratch else []

    def size() -> int:
        return ground.size(workspace, past=past) + sum(ground.size(root) for root in own)

    disk = Disk(size, max(SLACK, bounds.disk_bytes - before.held), [workspace, *own])
    disk.begin(before.held)
    return disk


# --- while it runs ---------------------------------------------------------------------------------------------------


def _run(
    job: socket.socket, way: Way, box: Box, scratch: str, seconds: float, most: int, reach: Reach, disk: Disk
) -> _Ended:  # fmt: skip
    out, into = os.pipe()
    doors: list[socket.socket] = []

    def inside(first: int) -> None:
        doors.append(doorway.listen_inside(first))

    pid = spawn(way, box, output=into, scratch=scratch, inside=inside if box.network else None)
    os.close(into)
    for door in doors:
        proxy.Proxy(door, reach).begin()
    job.sendall(encode(Kind.BEGUN, json.dumps({"pid": pid}).encode()))
    why = _pass_on(job, out, most, _overseer(pid, box.bounds, disk, time.monotonic() + seconds))
    if why is not None:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    until = time.monotonic() + _END_S
    while strays.end(()) and time.monotonic() < until:
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.005)
    os.close(out)
    return _Ended(code, why)


def _overseer(pid: int, bounds: Bounds, disk: Disk, until: float) -> Callable[[], str | None]:
    """Says why the run must end now, where it must."""

    def look() -> str | None:
        if time.monotonic() >= until:
            return "time"
        used = watch.use(pid)
        if used.memory_bytes > bounds.memory_bytes:
            return "memory"
        if disk.over(used.pids):
            return "disk"
        # Two are bubblewrap's own, and one the supervisor of what is bounded inside.
        return "processes" if used.processes > bounds.processes + 3 else None

    return look


def _pass_on(job: socket.socket, out: int, most: int, look: Callable[[], str | None]) -> str | None:
    """Until nobody holds the run's output open any more: all of it went to the worker. Why it must be ended before."""
    poll = select.poll()
    poll.register(out, select.POLLIN)
    next_look = time.monotonic() + _LOOK_EVERY_S
    total = 0
    while True:
        if poll.poll(_LOOK_EVERY_S * 1000):
            piece = os.read(out, _PIECE)
            if not piece:
                return None
            total += len(piece)
            job.sendall(encode(Kind.OUTPUT, piece))
            if total > most:
                return "output"
        if time.monotonic() >= next_look:
            why = look()
            if why is not None:
                return why
            next_look = time.monotonic() + _LOOK_EVERY_S

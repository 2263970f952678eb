"""Beginning a run behind the wall: a child of this process that can do no more than its box says.

This process must be single-threaded: it forks, and the child works on before its exec.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from shared.sandbox import bubble, landlock, seccomp
from shared.sandbox.box import ENVIRONMENT, OWNER, Bounds, Box
from shared.sandbox.tiers import Tier, Way

_PR_SET_NO_NEW_PRIVS, _PR_SET_PDEATHSIG, _PR_SET_SECCOMP = 38, 1, 22
_FILTER_MODE = 2
_CLONE_NEWUSER = 0x10000000
_MOST_FD = 65_536
CANNOT = 120
"""Exit code of a run that could not be begun; why stands in its output."""

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_DEVICES = ("/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty")


def is_root() -> bool:
    return os.geteuid() == 0


def spawn(way: Way, box: Box, *, output: int, scratch: str = "", inside: Callable[[int], None] | None = None) -> int:
    """The pid of a child that becomes `box`'s command by `way`, its output and complaints on `output`. `scratch` is, of
    the tier confined, a folder of this host that the run may use for itself. `inside` is called, of the tier isolated,
    with the pid of a process in the run's name spaces, before the command begins. Raises OSError where it cannot fork.
    """
    told, tell = os.pipe()
    go, let = os.pipe()
    gate = (os.pipe(), os.pipe()) if inside is not None and way.tier is Tier.ISOLATED else None
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        _child(way, box, output, scratch, _Steps(tell, go, None if gate is None else (gate[0][1], gate[1][0])), parent)
    for fd in (tell, go, *(() if gate is None else (gate[0][1], gate[1][0]))):
        os.close(fd)
    try:
        if way.tier is Tier.ISOLATED and is_root() and os.read(told, 1):
            _map(pid)
            os.write(let, b"x")
        if gate is not None and inside is not None:
            _begin_inside(gate[0][0], gate[1][1], inside)
    finally:
        for fd in (told, let, *(() if gate is None else (gate[0][0], gate[1][1]))):
            os.close(fd)
    return pid


def _begin_inside(info: int, let: int, inside: Callable[[int], None]) -> None:
    """Where nothing is told, bubblewrap has ended, and says why in its output."""
    said = b""
    while piece := os.read(info, 4096):
        said += piece
        if b"}" in said:
            inside(int(json.loads(said)["child-pid"]))
            os.write(let, b"x")
            return


@dataclass(frozen=True, slots=True)
class _Steps:
    """Of the child: to say that its users can be mapped, to hear that they are; and bubblewrap's two, where wanted."""

    tell: int
    go: int
    gate: tuple[int, int] | None


def _child(way: Way, box: Box, output: int, scratch: str, steps: _Steps, parent: int) -> NoReturn:
    try:
        os.dup2(output, 2)
        os.dup2(output, 1)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(CANNOT)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        _limit(box.bounds, count=is_root() or way.tier is Tier.CONFINED)
        if way.tier is Tier.ISOLATED:
            _bubble(way, box, steps)
        _confine(box, scratch)
    except BaseException as error:  # noqa: BLE001 - a child must never return into its parent's work
        os.write(2, f"the sandbox could not be begun ({type(error).__name__}: {error})\n".encode())
    finally:
        os._exit(CANNOT)


def _limit(bounds: Bounds, *, count: bool) -> None:
    wanted = [
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_CPU, bounds.cpu_seconds),
        (resource.RLIMIT_DATA, bounds.data_bytes),
        (resource.RLIMIT_FSIZE, bounds.file_bytes),
        (resource.RLIMIT_NOFILE, bounds.files),
    ]
    wanted += [(resource.RLIMIT_NPROC, bounds.processes)] if count else []
    for name, value in wanted:
        hard = resource.getrlimit(name)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)  # noqa: PLW2901 - nobody may raise it
        resource.setrlimit(name, (value, value))


# --- isolated --------------------------------------------------------------------------------------------------------


def _bubble(way: Way, box: Box, steps: _Steps) -> NoReturn:
    switch = is_root()
    if switch:
        _own_users(steps.tell, steps.go)
    made = {path: _memory(content) for path, content in bubble.contents(box).items()}
    # An attached folder may hold the socket of a service, and reading a folder is enough to connect to one in it.
    closed = (seccomp.AF_UNIX,) if box.attached is not None else ()
    filter_fd = _memory(seccomp.program(sockets=closed)) if seccomp.known() else None
    arguments = bubble.arguments(box, switch=switch, made=made, filter_fd=filter_fd, gate=steps.gate)
    mine = [box.workspace, *(kept.fd for kept in box.kept), *box.passed, *made.values()]
    mine += [fd for fd in (box.attached, box.python, filter_fd, *(steps.gate or ())) if fd is not None]
    _keep(mine)
    os.execve(way.bwrap, ["bwrap", *arguments], {})  # noqa: S606 - no shell is wanted


def _own_users(tell: int, go: int) -> None:
    """A name space of users in which root is nobody of this host but its owner, and OWNER is there to be become.

    Mapped the common way, a run's own user would be this host's root without its rights, and the kernel lets that one
    write what decides what runs here as root (/proc/sys/kernel/core_pattern).
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWUSER) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"no name space of users: {os.strerror(number)}")
    os.write(tell, b"x")
    if os.read(go, 1) != b"x":
        raise OSError("the name space of users was not given its users")
    # Below this one there shall be no other: each is a way to parts of the kernel that are closed to a plain user.
    Path("/proc/sys/user/max_user_namespaces").write_text("0")


def _map(pid: int) -> None:
    for name in ("uid_map", "gid_map"):
        Path(f"/proc/{pid}/{name}").write_text(f"0 0 1\n1000 {OWNER} 1\n")


def _memory(content: bytes) -> int:
    fd = os.memfd_create("made")
    os.write(fd, content)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _keep(fds: Iterable[int]) -> None:
    """Of this process's descriptors the new program gets these and the first three."""
    wanted = sorted({*fds})
    for fd in wanted:
        os.set_inheritable(fd, True)
    below = 3
    for fd in wanted:
        os.closerange(below, fd)
        below = fd + 1
    os.closerange(below, _MOST_FD)


# --- confined --------------------------------------------------------------------------------------------------------


def _confine(box: Box, scratch: str) -> NoReturn:
    """A user of its own, Landlock, no sockets. Nothing hides the rest of the host's names, but nothing of it opens."""
    os.setsid()
    scratch_fd = os.open(scratch, os.O_PATH | os.O_DIRECTORY)
    os.fchdir(box.workspace)
    os.setgroups([])
    os.setresgid(OWNER, OWNER, OWNER)
    os.setresuid(OWNER, OWNER, OWNER)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)  # a change of user takes it away
    sealed = landlock.seal(
        landlock.Rules(
            folders=[] if box.attached is None else [box.attached],
            owned=[box.workspace, scratch_fd],
            readable=bubble.SYSTEM_FILES,
            programs=SYSTEM,
            devices=_DEVICES,
        )
    )
    if not sealed:
        raise OSError("this kernel has no Landlock")
    _filter(seccomp.program(sockets=None))
    _keep(box.passed)
    home = {"HOME": scratch, "TMPDIR": scratch}
    with suppress(FileNotFoundError):
        os.execve(box.command[0], list(box.command), {**ENVIRONMENT, **home})  # noqa: S606 - no shell is wanted
    raise OSError(f"there is no {box.command[0]}")


def _filter(code: bytes) -> None:
    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]

    kept = ctypes.create_string_buffer(code, len(code))
    wanted = Program(len(code) // 8, ctypes.cast(kept, ctypes.c_void_p))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(
        _PR_SET_SECCOMP, _FILTER_MODE, ctypes.byref(wanted), 0, 0
    ):
        raise OSError(ctypes.get_errno(), "the filter of system calls was refused")

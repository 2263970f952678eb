"""What a child may still do: memory, time and files are bounded; on Linux, Landlock closes files and the network.

Landlock ties each permission to the folder itself, not to its path, so a link swapped in at any moment leads nowhere.
Called in the forked, single-threaded child just before its work, and cannot be taken back.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import stat
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

_CREATE, _ADD_RULE, _RESTRICT = 444, 445, 446
_PR_SET_NO_NEW_PRIVS, _PR_SET_PDEATHSIG = 38, 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_FOLDER_READ = _READ_FILE | _READ_DIR
# What each Landlock version brought: file rights, then network rights and scopes.
_FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
_NET_FROM, _SCOPE_FROM = 4, 6


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
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, wall_seconds)


def die_with_parent() -> None:
    """On Linux this process is killed when its launcher goes; elsewhere its time bound ends it."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def landlock_version() -> int:
    """The kernel's Landlock version, 0 where there is none."""
    if sys.platform != "linux":
        return 0
    version = ctypes.CDLL(None, use_errno=True).syscall(_CREATE, None, 0, 1)
    return max(0, int(version))


def seal(*, folders: Iterable[int] = (), readable: Iterable[str] = (), executable: Iterable[str] = ()) -> bool:
    """From here on only `folders` (descriptors) and `readable` (paths) are read, only the files `executable` run, and
    nothing but the null device is written.

    False, and nothing changed, where the kernel has no Landlock. Raises OSError if it has and refuses.
    """
    version = landlock_version()
    if version == 0:
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    handled = (1 << _FILE_RIGHTS[min(version, 5)]) - 1
    fields = [handled]
    fields += [0b11] if version >= _NET_FROM else []
    fields += [0b11] if version >= _SCOPE_FROM else []
    attributes = (ctypes.c_uint64 * len(fields))(*fields)
    ruleset = _checked(libc.syscall(_CREATE, attributes, ctypes.sizeof(attributes), 0))
    for fd in folders:
        _allow(libc, ruleset, fd, _FOLDER_READ)
    for path in readable:
        _allow_path(libc, ruleset, path, _FOLDER_READ)
    for path in executable:
        _allow_path(libc, ruleset, path, _EXECUTE | _READ_FILE)
    _allow_path(libc, ruleset, os.devnull, _READ_FILE | _WRITE_FILE)  # git will not start without it
    _checked(libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    _checked(libc.syscall(_RESTRICT, ruleset, 0))
    os.close(ruleset)
    return True


def _allow_path(libc: ctypes.CDLL, ruleset: int, path: str, rights: int) -> None:
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # a system without that folder
    try:
        is_folder = stat.S_ISDIR(os.fstat(fd).st_mode)
        _allow(libc, ruleset, fd, rights if is_folder else rights & ~_READ_DIR)
    finally:
        os.close(fd)


def _allow(libc: ctypes.CDLL, ruleset: int, fd: int, rights: int) -> None:
    class Beneath(ctypes.Structure):
        _pack_ = 1
        _fields_ = [("rights", ctypes.c_uint64), ("parent", ctypes.c_int32)]

    rule = Beneath(rights, fd)
    _checked(libc.syscall(_ADD_RULE, ruleset, 1, ctypes.byref(rule), 0))


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def loaders() -> list[str]:
    """The programs that the kernel runs to load others; without them nothing dynamically linked starts."""
    patterns = ("lib/ld-*.so*", "lib64/ld-*.so*", "lib/*/ld-*.so*", "usr/lib/*/ld-*.so*")
    return [str(path.resolve()) for pattern in patterns for path in Path("/").glob(pattern)]

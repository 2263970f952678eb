"""Landlock: from here on this process and what it begins reaches only the files named, and opens no TCP connection.

Each permission is tied to the folder itself, not to its path, so a link swapped in at any moment leads nowhere. Called
in a single-threaded child just before its work, and cannot be taken back.
"""

from __future__ import annotations

import ctypes
import os
import stat
import sys
from collections.abc import Iterable
from dataclasses import dataclass

_CREATE, _ADD_RULE, _RESTRICT = 444, 445, 446
_PR_SET_NO_NEW_PRIVS = 38
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_TRUNCATE = 1 << 14
_FOLDER_READ = _READ_FILE | _READ_DIR
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
_DEVICE = _READ_FILE | _WRITE_FILE
# Make devices: of no use to anybody, and a rule that could only be a mistake.
_NO_DEVICES = ~((1 << 6) | (1 << 11))
# What each Landlock version brought: file rights, then network rights and scopes.
_FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
_NET_FROM, _SCOPE_FROM = 4, 6
SCOPES_FROM = _SCOPE_FROM
"""From this version on, a process may send no signal and reach no abstract socket outside."""


@dataclass(frozen=True, slots=True)
class Rules:
    """Descriptors of folders that are read, those that are read, written and run; paths that are read, run, both; and
    devices that are read and written. The null device always is."""

    folders: Iterable[int] = ()
    owned: Iterable[int] = ()
    readable: Iterable[str] = ()
    executable: Iterable[str] = ()
    programs: Iterable[str] = ()
    devices: Iterable[str] = ()
    network: bool = False
    """TCP stays open."""


def version() -> int:
    """The kernel's Landlock version, 0 where there is none."""
    if sys.platform != "linux":
        return 0
    return max(0, int(ctypes.CDLL(None, use_errno=True).syscall(_CREATE, None, 0, 1)))


def seal(rules: Rules) -> bool:
    """From here on only what `rules` name is reached. False, and nothing changed, where the kernel has no Landlock.
    Raises OSError if it has and refuses."""
    found = version()
    if found == 0:
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    handled = (1 << _FILE_RIGHTS[min(found, 5)]) - 1
    fields = [handled]
    fields += [0 if rules.network else 0b11] if found >= _NET_FROM else []
    fields += [0b11] if found >= _SCOPE_FROM else []
    attributes = (ctypes.c_uint64 * len(fields))(*fields)
    ruleset = _checked(libc.syscall(_CREATE, attributes, ctypes.sizeof(attributes), 0))
    for fd in rules.folders:
        _allow(libc, ruleset, fd, _FOLDER_READ)
    for fd in rules.owned:
        _allow(libc, ruleset, fd, handled & _NO_DEVICES)
    for path in rules.readable:
        _allow_path(libc, ruleset, path, _FOLDER_READ)
    for path in rules.executable:
        _allow_path(libc, ruleset, path, _EXECUTE | _READ_FILE)
    for path in rules.programs:
        _allow_path(libc, ruleset, path, _EXECUTE | _FOLDER_READ)
    for path in (os.devnull, *rules.devices):  # git will not start without the null device
        _allow_path(libc, ruleset, path, _DEVICE)
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
        _allow(libc, ruleset, fd, rights if is_folder else rights & _OF_FILES)
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

"""Owns the sentences for what can go wrong on a machine: each says what happened and what to do."""

from __future__ import annotations

import errno
from collections.abc import Iterable
from pathlib import Path


class StackError(Exception):
    """The local stack cannot go on; the message is one sentence for the person at the terminal."""

    code = "local_stack"


_DISK = "The disk is full: free some space, or point NIGHTSHIFT_HOME at a folder on another disk"

# First match wins, so the causes stand before their consequences.
_SIGNS: tuple[tuple[str, str], ...] = (
    ("No space left on device", _DISK),
    ("Disk quota exceeded", "The disk quota is used up: free some space, or point NIGHTSHIFT_HOME at another disk"),
    ("Read-only file system", "The file system is read-only: point NIGHTSHIFT_HOME at a folder that can be written"),
    (
        "database files are incompatible with server",
        "The data folder was made by another Postgres version: use that version, or another NIGHTSHIFT_HOME",
    ),
    (
        "could not create shared memory segment",
        "The system refuses shared memory: raise kernel.shmmax or close other database servers",
    ),
    ("Cannot allocate memory", "There is not enough memory: close something, or run fewer workers"),
    (
        "could not load library",
        "The server's libraries do not fit this system: install Postgres and set NIGHTSHIFT_DATABASE_URL",
    ),
    (
        "cannot execute binary file",
        "The packaged server is made for another processor: install Postgres 15 or later and Valkey on the PATH",
    ),
    ("Address already in use", "The port asked for is taken: leave NIGHTSHIFT_API_PORT unset to get a free one"),
    (
        "Permission denied",
        "A folder may not be entered or written by this user: check the owner of NIGHTSHIFT_HOME and of the checkout",
    ),
)


def cause(lines: Iterable[str]) -> str | None:
    """The sentence for the first known sign in what a program last said, or None."""
    text = "\n".join(lines)
    return next((sentence for sign, sentence in _SIGNS if sign in text), None)


def os_error(error: OSError, doing: str, path: Path) -> StackError:
    """A failed system call as one sentence naming the path and the mend."""
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT:
            return StackError(f"{_DISK} (while {doing} {path}).")
        case errno.EROFS:
            return StackError(
                f"{path} is on a read-only file system: point NIGHTSHIFT_HOME at one that can be written."
            )
        case errno.EACCES | errno.EPERM:
            return StackError(f"This user may not write {path}: change its owner, or set NIGHTSHIFT_HOME elsewhere.")
        case errno.ENOTDIR | errno.EEXIST:
            return StackError(f"{path} is not a folder: move it away, or set NIGHTSHIFT_HOME elsewhere.")
        case _:
            return StackError(f"Failed while {doing} {path}: {error.strerror or error}; set NIGHTSHIFT_HOME elsewhere.")

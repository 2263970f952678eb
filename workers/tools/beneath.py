"""Opening what lies below a root, name by name from descriptor to descriptor: no link is followed, none leads out.

A check of the whole path followed by an open of the whole path loses a race: a folder swapped for a link in between
leads out of the root. Here each name is opened relative to the folder already held, with O_NOFOLLOW, and the file is
judged by the descriptor that will be read.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from workers.tools.context import ToolRefused

FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# O_NONBLOCK: a FIFO swapped in after the check would else hold the thread for ever.
_FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

HOME_MARK = "admin-token.secret"
"""In every home that `deploy.local` makes, from its first start on."""
_MOST_UP = 1_000
_PROCESSES = Path("/proc").stat().st_dev if Path("/proc").is_mount() else None


@contextmanager
def folder(root: int, parts: Sequence[str], under: str = "") -> Generator[int]:
    """A descriptor of the folder `parts` below `root`. Raises `ToolRefused`, with `under` before the path it names."""
    fd = os.dup(root)
    try:
        for index, name in enumerate(parts):
            try:
                inner = os.open(name, FOLDER_FLAGS, dir_fd=fd)
            except OSError as error:
                raise refusal(fd, parts[: index + 1], error, under) from error
            os.close(fd)
            fd = inner
            must_be_open(fd, under + "/".join(parts[: index + 1]))
        yield fd
    finally:
        os.close(fd)


def must_be_open(fd: int, shown: str) -> None:
    """Raises `ToolRefused` where the folder is a stack's home, whatever it is called, or lists this host's processes.

    Both hold keys and passwords, and an attached folder may well have one somewhere in it.
    """
    if os.fstat(fd).st_dev == _PROCESSES or kind_in(fd, HOME_MARK) != "missing":
        raise ToolRefused(f"{shown} holds the state of this service or its host and is not open to tools")


def must_be_outside(fd: int, shown: str) -> None:
    """Raises `ToolRefused` where the folder lies in a stack's home, at any depth. Who attached it was asked the same;
    a link on its path may have been turned since."""
    here = "."
    for _ in range(_MOST_UP):
        above = f"{here}/.."
        if kind_in(fd, f"{above}/{HOME_MARK}") != "missing":
            raise ToolRefused(f"{shown} lies in the state of this service and is not open to tools")
        if _is_top(fd, here, above):
            return
        here = above


def _is_top(fd: int, here: str, above: str) -> bool:
    """Whether nothing above can be looked at: it is the root, or a folder that may not be searched."""
    try:
        return os.path.samestat(os.stat(here, dir_fd=fd), os.stat(above, dir_fd=fd))
    except OSError:
        return True


@contextmanager
def regular_file(root: int, parts: Sequence[str], under: str = "") -> Generator[int]:
    """A descriptor, open for reading, of the regular file `parts` below `root`. Raises `ToolRefused`."""
    if not parts:
        raise ToolRefused("that is a folder; list_files shows what is in it")
    with folder(root, parts[:-1], under) as parent:
        fd = open_regular(parent, parts, under)
    try:
        yield fd
    finally:
        os.close(fd)


def open_regular(parent: int, parts: Sequence[str], under: str = "") -> int:
    """Opens the last name of `parts` in `parent`. The look before the open keeps devices from being touched at all."""
    try:
        _must_be_regular(os.stat(parts[-1], dir_fd=parent, follow_symlinks=False).st_mode, under + "/".join(parts))
        fd = os.open(parts[-1], _FILE_FLAGS, dir_fd=parent)
    except OSError as error:
        raise refusal(parent, parts, error, under) from error
    try:
        _must_be_regular(os.fstat(fd).st_mode, under + "/".join(parts))
    except ToolRefused:
        os.close(fd)
        raise
    return fd


def kind_of(mode: int) -> str:
    """`file`, `folder`, `link`, or what else a mode says."""
    kinds = (
        (stat.S_ISREG, "file"),
        (stat.S_ISDIR, "folder"),
        (stat.S_ISLNK, "link"),
        (stat.S_ISFIFO, "pipe"),
        (stat.S_ISSOCK, "socket"),
    )
    return next((name for test, name in kinds if test(mode)), "device")


def _must_be_regular(mode: int, shown: str) -> None:
    kind = kind_of(mode)
    if kind == "folder":
        raise ToolRefused(f"{shown} is a folder; list_files shows what is in it")
    if kind == "link":
        raise ToolRefused(f"{shown} is a link, and links are not followed; name the file itself")
    if kind != "file":
        raise ToolRefused(f"{shown} is a {kind}, not a file")


def refusal(parent: int, parts: Sequence[str], error: OSError, under: str) -> ToolRefused:
    """The sentence for an open that failed; `parts` ends with the name that failed in `parent`."""
    shown = under + "/".join(parts)
    if error.errno in (errno.ENOENT, errno.ENAMETOOLONG):
        return ToolRefused(f"{shown} does not exist")
    if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EMLINK):
        return ToolRefused(_not_a_folder(parent, parts, shown))
    if error.errno in (errno.EACCES, errno.EPERM):
        return ToolRefused(f"{shown} may not be read")
    return ToolRefused(f"{shown} cannot be opened ({errno.errorcode.get(error.errno or 0, 'unknown')})")


def _not_a_folder(parent: int, parts: Sequence[str], shown: str) -> str:
    try:
        kind = kind_of(os.stat(parts[-1], dir_fd=parent, follow_symlinks=False).st_mode)
    except OSError:
        return f"{shown} does not exist"
    if kind == "link":
        return f"{shown} is a link, and links are not followed; name what it points to"
    return f"{shown} is a {kind}, not a folder"


def kind_in(parent: int, name: str) -> str:
    """What `name` in the folder `parent` is, itself and not what it points to; `missing` where there is none."""
    try:
        return kind_of(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
    except OSError:
        return "missing"

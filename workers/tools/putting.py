"""Putting a whole file below a root: there at once or not at all, and no link on the way is followed or replaced."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress

from workers.tools import beneath
from workers.tools.context import ToolRefused

_NEW_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def put(root: int, parts: Sequence[str], content: bytes, going: Callable[[], None]) -> bool:
    """The file `parts` below `root` holds exactly the content, its folders made where missing. True where it replaced
    one. `going` is asked right before it becomes visible and may raise. Raises `ToolRefused`."""
    with _made_folder(root, parts[:-1]) as parent:
        try:
            return _put(parent, parts, content, going)
        except OSError as error:
            raise beneath.refusal(parent, parts, error, "") from error


def _put(parent: int, parts: Sequence[str], content: bytes, going: Callable[[], None]) -> bool:
    mode = _mode_of_old(parent, parts)
    # Beside its goal, so that the rename stays in one folder, and under a name that nobody can guess.
    part = f".{secrets.token_hex(8)}.part"
    fd = os.open(part, _NEW_FLAGS, 0o600, dir_fd=parent)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(fd, 0o644 if mode is None else mode)
            os.fsync(fd)
        # A worker that was frozen until others gave its turn away stops here.
        going()
        _mode_of_old(parent, parts)
        os.rename(part, parts[-1], src_dir_fd=parent, dst_dir_fd=parent)
    except BaseException:
        os.unlink(part, dir_fd=parent)
        raise
    return mode is not None


def _mode_of_old(parent: int, parts: Sequence[str]) -> int | None:
    """The permissions of the file to be replaced, None if there is none. Raises `ToolRefused` if it is no file."""
    try:
        old = os.stat(parts[-1], dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return None
    kind = beneath.kind_of(old.st_mode)
    if kind != "file":
        raise ToolRefused(f"{'/'.join(parts)} is a {kind} and is not replaced")
    return stat.S_IMODE(old.st_mode) & 0o777


@contextmanager
def _made_folder(root: int, parts: Sequence[str]) -> Generator[int]:
    fd = os.dup(root)
    try:
        for index, name in enumerate(parts):
            try:
                inner = _enter(fd, name)
            except OSError as error:
                raise beneath.refusal(fd, parts[: index + 1], error, "") from error
            os.close(fd)
            fd = inner
        yield fd
    finally:
        os.close(fd)


def _enter(fd: int, name: str) -> int:
    try:
        return os.open(name, beneath.FOLDER_FLAGS, dir_fd=fd)
    except FileNotFoundError:
        with suppress(FileExistsError):  # another made it meanwhile, which is as well
            os.mkdir(name, 0o755, dir_fd=fd)
        return os.open(name, beneath.FOLDER_FLAGS, dir_fd=fd)

"""The folders of a run before and after it: who owns them, what in them steers later behaviour, what must be covered.

Files that steer (shared/gate/steering.py) are mounted read-only, so that no road leads to them from inside. One that is
not there yet cannot be mounted, and a second name of one is a road around its mount: so they are looked for again when
the run is over, what is new is removed, and what differs is put back.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from workers.tools import beneath
from workers.tools.places import CHILDREN, PRIVATE

MOST_BEFORE = 300_000
"""Entries of a folder that is looked through before a run; one that has more is not given to a run."""
MOST_AFTER = 1_000_000
_MOST_DEPTH = 400
_MOST_CONTENT = 256 << 10
_MOST_CONTENTS = 8 << 20
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
Steers = Callable[[tuple[str, ...]], bool]


class TooMuch(Exception):
    """The folder has more entries than can be looked through."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One file that steers: what it is, so that it is known again, and what stood in it where that is small."""

    parts: tuple[str, ...]
    identity: tuple[int, int, int, int, int]
    content: bytes | None
    mode: int

    @property
    def path(self) -> str:
        return "/".join(self.parts)


@dataclass(slots=True)
class Look:
    """`steering` by path, and `guarded`, the outermost paths that hold all of it but links; `closed`: folders of no
    concern to a run, which are covered; `passed_over`: whether the folder of children is there, which a run cannot
    write and which was not looked into; `odd`: pipes, sockets and devices, through which a read-only folder is still a
    way out; `held`: bytes on the disk."""

    steering: dict[tuple[str, ...], Seen] = field(default_factory=dict[tuple[str, ...], Seen])
    passed_over: bool = False
    guarded: list[tuple[str, ...]] = field(default_factory=list[tuple[str, ...]])
    closed: list[str] = field(default_factory=list[str])
    odd: list[str] = field(default_factory=list[str])
    held: int = 0


@dataclass(frozen=True, slots=True)
class Entry:
    parts: tuple[str, ...]
    parent: int
    info: os.stat_result


def look(
    root: int, steers: Steers | None, *, owner: int | None = None, most: int = MOST_BEFORE, past: str | None = None
) -> Look:
    """All below the folder `root`. With `owner`, whatever is another's becomes that user's. The folder `past` in it is
    not entered. Raises TooMuch."""
    found = Look(passed_over=past is not None and beneath.kind_in(root, past) == "folder")
    room, held = _MOST_CONTENTS, _Held()
    if owner is not None:
        os.fchown(root, owner, owner)
    for met in _walk(root, found.closed, most, past):
        mode = met.info.st_mode
        held.add(met.info)
        strange = owner is not None and met.info.st_uid != owner and (stat.S_ISDIR(mode) or met.info.st_nlink == 1)
        entry = _given(met, owner) if strange and owner is not None else met
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)):
            found.odd.append("/".join(entry.parts))
        if steers is None or not _steers(steers, entry):
            continue
        if not stat.S_ISLNK(mode) and not (found.guarded and _is_below(entry.parts, found.guarded[-1])):
            found.guarded.append(entry.parts)
        if not stat.S_ISDIR(mode):
            seen = _seen(entry, room)
            room -= len(seen.content or b"")
            found.steering[entry.parts] = seen
    found.held = held.bytes
    return found


def size(root: int, *, past: str | None = None) -> int:
    """Bytes on the disk of all below the folder, but for the folder `past` in it. Raises TooMuch."""
    held = _Held()
    for met in _walk(root, [], MOST_AFTER, past):
        held.add(met.info)
    return held.bytes


class _Held:
    """Counts a file with several names once."""

    def __init__(self) -> None:
        self.bytes = 0
        self._linked: set[int] = set()

    def add(self, info: os.stat_result) -> None:
        if info.st_nlink > 1 and not stat.S_ISDIR(info.st_mode):
            if info.st_ino in self._linked:
                return
            self._linked.add(info.st_ino)
        self.bytes += info.st_blocks * 512


def _given(entry: Entry, owner: int) -> Entry:
    """Its owner is `owner` now. Of a file with a second name the caller has made sure that it has none: that name may
    lie outside."""
    name = entry.parts[-1]
    with suppress(OSError):  # gone meanwhile
        os.chown(name, owner, owner, dir_fd=entry.parent, follow_symlinks=False)
        return Entry(entry.parts, entry.parent, os.stat(name, dir_fd=entry.parent, follow_symlinks=False))
    return entry


def _is_below(parts: tuple[str, ...], top: tuple[str, ...]) -> bool:
    """The walk goes through a folder before it leaves it: what is below any of them is below the last one."""
    return parts[: len(top)] == top


def _steers(steers: Steers, entry: Entry) -> bool:
    """A link steers by its name, and as a folder would whose files steer."""
    return steers(entry.parts) or (stat.S_ISLNK(entry.info.st_mode) and steers((*entry.parts, "x")))


def _seen(entry: Entry, room: int) -> Seen:
    info = entry.info
    # The time of change is the one that nobody sets at will; it stays when only a folder above is renamed.
    identity = (info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns, stat.S_IFMT(info.st_mode))
    content = None
    if stat.S_ISREG(info.st_mode) and info.st_size <= min(_MOST_CONTENT, room):
        with suppress(OSError):
            fd = os.open(entry.parts[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=entry.parent)
            try:
                content = os.read(fd, _MOST_CONTENT + 1)
            finally:
                os.close(fd)
    return Seen(entry.parts, identity, content, stat.S_IMODE(info.st_mode) & 0o777)


def _walk(root: int, closed: list[str], most: int, past: str | None) -> Iterator[Entry]:
    """Every entry, a folder before what is in it. Folders that belong to a stack or to another file system are told in
    `closed` and not entered. Raises TooMuch."""
    device = os.fstat(root).st_dev
    levels = [_Level(os.dup(root), (), _names(root))]
    try:
        while levels:
            level = levels[-1]
            if not level.names:
                os.close(levels.pop().fd)
                continue
            name = level.names.pop()
            most -= 1
            if most < 0:
                raise TooMuch
            parts = (*level.parts, name)
            with suppress(OSError):  # gone meanwhile
                info = os.stat(name, dir_fd=level.fd, follow_symlinks=False)
                if not stat.S_ISDIR(info.st_mode):
                    yield Entry(parts, level.fd, info)
                    continue
                inner = _open_inner(level.fd, name) if info.st_dev == device and name.casefold() != PRIVATE else None
                if inner is None:
                    closed.append("/".join(parts))
                    continue
                yield Entry(parts, level.fd, info)
                if len(parts) < _MOST_DEPTH and parts != (past,):
                    levels.append(_Level(inner, parts, _names(inner)))
                else:
                    os.close(inner)
    finally:
        for level in levels:
            os.close(level.fd)


@dataclass(frozen=True, slots=True)
class _Level:
    fd: int
    parts: tuple[str, ...]
    names: list[str]


def _names(folder: int) -> list[str]:
    with os.scandir(folder) as entries:
        return sorted((entry.name for entry in entries), reverse=True)


def _open_inner(folder: int, name: str) -> int | None:
    """A descriptor of the folder; None where it is the home of a stack."""
    fd = os.open(name, FOLDER, dir_fd=folder)
    if beneath.kind_in(fd, beneath.HOME_MARK) == "missing":
        return fd
    os.close(fd)
    return None


# --- afterwards ------------------------------------------------------------------------------------------------------


def take_back(root: int, before: Look, steers: Steers) -> tuple[list[str], list[str]]:
    """Files that steer are as they were before. What was taken back, as paths; and what differs and could not be put
    back, because it is too large to have been kept. Raises TooMuch where not all was looked at."""
    lost: list[str] = []
    seen_now, done = _opened(root, before, steers)
    after = seen_now.steering
    moved = {seen.identity for seen in before.steering.values()}
    for parts, seen in after.items():
        old = before.steering.get(parts)
        if old is not None and old.identity == seen.identity:
            continue
        if old is None and seen.identity in moved and not _left(before, after, seen):
            continue  # its folder was renamed, and it with it
        if old is None or old.content is not None:
            _remove(root, parts)
            done.append(seen.path)
        else:
            lost.append(seen.path)
        if old is not None and old.content is not None:
            _restore(root, old)
    for parts, old in before.steering.items():
        if parts in after or any(seen.identity == old.identity for seen in after.values()):
            continue
        if old.content is not None and _restore(root, old):
            done.append(old.path)
        else:
            lost.append(old.path)
    return done, lost


def _opened(root: int, before: Look, steers: Steers) -> tuple[Look, list[str]]:
    """All below the folder as it is now, with nothing new that would be passed over as the state of a service; and what
    was removed for that."""
    past = CHILDREN if before.passed_over else None
    after = look(root, steers, most=MOST_AFTER, past=past)
    new = [tuple(path.split("/")) for path in after.closed if path not in before.closed]
    if not new:
        return after, []
    removed: list[str] = []
    for parts in new:
        mark = parts if parts[-1].casefold() == PRIVATE else (*parts, beneath.HOME_MARK)
        _remove_whole(root, mark)
        removed.append("/".join(mark))
    return look(root, steers, most=MOST_AFTER, past=past), removed


def _remove_whole(root: int, parts: tuple[str, ...]) -> None:
    with suppress(OSError), _folder(root, parts[:-1]) as folder:
        try:
            os.unlink(parts[-1], dir_fd=folder)
        except IsADirectoryError:
            shutil.rmtree(parts[-1], ignore_errors=True, dir_fd=folder)


def _left(before: Look, after: dict[tuple[str, ...], Seen], seen: Seen) -> bool:
    """Whether the file that `seen` was is still where it stood: then this is a second one."""
    return any(old.identity == seen.identity and parts in after for parts, old in before.steering.items())


def _remove(root: int, parts: tuple[str, ...]) -> None:
    with suppress(OSError), _folder(root, parts[:-1]) as folder:
        os.unlink(parts[-1], dir_fd=folder)


def _restore(root: int, old: Seen) -> bool:
    """Whether it stands again. Its folders are made where they are gone; through a link nothing is written."""
    part = f".{secrets.token_hex(8)}.part"
    try:
        with _folder(root, old.parts[:-1], make=True) as folder:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with os.fdopen(os.open(part, flags, 0o600, dir_fd=folder), "wb") as file:
                file.write(old.content or b"")
                os.fchmod(file.fileno(), old.mode)
            os.rename(part, old.parts[-1], src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        return False
    return True


@contextmanager
def _folder(root: int, parts: tuple[str, ...], *, make: bool = False) -> Generator[int]:
    """A descriptor of the folder `parts` below `root`, no link followed."""
    fd = os.dup(root)
    try:
        for name in parts:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(name, 0o755, dir_fd=fd)
            inner = os.open(name, FOLDER, dir_fd=fd)
            os.close(fd)
            fd = inner
        yield fd
    finally:
        os.close(fd)


def mount_point(root: int, name: str) -> bool:
    """Whether the folder `name` is there to be mounted over; it is made where nothing is."""
    with suppress(FileExistsError):
        os.mkdir(name, 0o755, dir_fd=root)
    try:
        os.close(os.open(name, FOLDER, dir_fd=root))
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ELOOP, errno.EACCES):
            return False
        raise
    return True

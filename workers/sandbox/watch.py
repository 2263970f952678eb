"""What all processes of a run use together: the kernel bounds each of them, and no control group is ours to make. What
they write is looked at as often as it costs little, and sooner where the disk fills."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from workers.sandbox import ground

_PAGE = os.sysconf("SC_PAGE_SIZE")
_PARENT, _RESIDENT = 1, 21
"""Fields of /proc/PID/stat behind the name, which may hold anything and ends with the last bracket."""


@dataclass(frozen=True, slots=True)
class Use:
    pids: frozenset[int]
    memory_bytes: int

    @property
    def processes(self) -> int:
        return len(self.pids)


def use(top: int) -> Use:
    """Of `top` and all that descend from it. Pages that several share count for each."""
    parents: dict[int, int] = {}
    resident: dict[int, int] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - a path object a process is too much for what runs ten times a second
        if not name.isdigit():
            continue
        try:
            fields = Path("/proc", name, "stat").read_bytes().rpartition(b")")[2].split()
            parents[int(name)] = int(fields[_PARENT])
            resident[int(name)] = int(fields[_RESIDENT]) * _PAGE
        except (OSError, IndexError, ValueError):
            continue  # gone meanwhile
    below = _below(top, parents)
    return Use(frozenset(below), sum(resident[pid] for pid in below))


def _below(top: int, parents: dict[int, int]) -> set[int]:
    children: dict[int, list[int]] = {}
    for pid, parent in parents.items():
        children.setdefault(parent, []).append(pid)
    found: set[int] = set()
    left = [top] if top in parents else []
    while left:
        pid = left.pop()
        if pid not in found:
            found.add(pid)
            left += children.get(pid, [])
    return found


_EVERY_S = 2.0
_SHARE = 20
"""A look at the disk takes at most a twentieth of the time."""
SLACK = 64 << 20
"""What a run may add where there is too much already: without room nothing can be tidied up."""


@dataclass(slots=True)
class Disk:
    """What the folders of a run may come to hold. `size` tells how many bytes that is now; `room` is how many more than
    at the beginning it may be. `roots` lie on the disks that may fill."""

    size: Callable[[], int]
    room: int
    roots: Sequence[int]
    now: Callable[[], float] = time.monotonic
    _before: int = 0
    _left: int = 0
    _free: int = 0
    _next: float = 0.0
    _soonest: float = 0.0
    _devices: frozenset[int] = field(default_factory=frozenset[int])

    def begin(self, before: int) -> None:
        """With so many bytes."""
        self._before, self._left, self._free = before, self.room, self._free_now()
        self._next = self.now() + _EVERY_S
        self._devices = frozenset(os.fstat(root).st_dev for root in self.roots)

    def over(self, pids: Collection[int]) -> bool:
        """Whether they hold more by now than they may, files included that have no name any more."""
        now, free = self.now(), self._free_now()
        filling = self._free - free > self._left // 2 and now >= self._soonest
        if now < self._next and not filling:
            return False
        try:
            grown = self.size() + nameless(pids, self._devices) - self._before
        except ground.TooMuch:
            return True
        took = self.now() - now
        self._next, self._soonest = now + max(_EVERY_S, _SHARE * took), now + 2 * took
        self._left, self._free = self.room - grown, free
        return grown > self.room

    def _free_now(self) -> int:
        told = [os.fstatvfs(root) for root in self.roots]
        return min((one.f_bavail * one.f_frsize for one in told), default=0)


def nameless(pids: Collection[int], devices: Collection[int]) -> int:
    """Bytes of files that these processes have open and that stand in no folder any more, each once."""
    found: dict[tuple[int, int], int] = {}
    for pid in pids:
        with suppress(OSError):  # gone meanwhile, or not ours to look into
            for name in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208 - as above
                with suppress(OSError):
                    info = os.stat(f"/proc/{pid}/fd/{name}")  # noqa: PTH116 - as above
                    if info.st_nlink == 0 and stat.S_ISREG(info.st_mode) and info.st_dev in devices:
                        found[info.st_dev, info.st_ino] = info.st_blocks * 512
    return sum(found.values())

"""What all processes of a run use together: the kernel bounds each of them, and no control group is ours to make."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

_PAGE = os.sysconf("SC_PAGE_SIZE")
_PARENT, _RESIDENT = 1, 21
"""Fields of /proc/PID/stat behind the name, which may hold anything and ends with the last bracket."""


@dataclass(frozen=True, slots=True)
class Use:
    processes: int
    memory_bytes: int


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
    return Use(len(below), sum(resident[pid] for pid in below))


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

"""Going through folders breadth first, bounded in depth, entries and time; nothing is followed, all is told.

Each folder is opened anew from the root, name by name: no descriptor stays open behind, however deep the tree.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from workers.tools import beneath
from workers.tools.context import ToolRefused
from workers.tools.places import PRIVATE

CLOSED = frozenset(
    {".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", ".tox", ".mypy_cache", ".ruff_cache"}
)
"""Folders that are listed and not entered, unless the path names one: they hold what nobody wrote by hand."""
MOST_DEPTH = 64
_MOST_IN_FOLDER = 50_000
_MOST_ENTRIES = 200_000


@dataclass(frozen=True, slots=True)
class Entry:
    """`parts` are relative to the root; `kind` as `beneath.kind_of` says; `modified` in seconds."""

    parts: tuple[str, ...]
    kind: str
    size: int
    modified: float


@dataclass(slots=True)
class Tally:
    """What a walk left out: filled while it goes."""

    too_deep: int = 0
    closed: list[str] = field(default_factory=list[str])
    unreadable: int = 0
    cut_folders: int = 0
    stopped: bool = False

    def sentences(self) -> list[str]:
        told: list[str] = []
        if self.closed:
            told.append(f"not opened: {', '.join(sorted(set(self.closed)))}")
        if self.too_deep:
            told.append(f"{self.too_deep} deeper folders not opened")
        if self.unreadable:
            told.append(f"{self.unreadable} folders or files could not be read")
        if self.cut_folders:
            told.append(f"{self.cut_folders} folders shown only up to {_MOST_IN_FOLDER:,} entries")
        if self.stopped:
            told.append("stopped early; name a folder to go on there")
        return told


def walk(
    root: int, parts: tuple[str, ...], depth: int, over: Callable[[], bool], tally: Tally, under: str
) -> Iterator[Entry]:
    """Every entry up to `depth` levels below `parts`, by folder and name. Raises `ToolRefused` if that is no folder."""
    with beneath.folder(root, parts, under):
        pass
    waiting = deque([parts])
    seen = 0
    while waiting:
        at = waiting.popleft()
        for entry in _entries(root, at, tally):
            seen += 1
            if seen > _MOST_ENTRIES or (seen % 256 == 0 and over()):
                tally.stopped = True
                return
            yield entry
            if entry.kind == "folder":
                _plan(waiting, entry, len(entry.parts) - len(parts), depth, tally)
        if over():
            tally.stopped = True
            return


def _plan(waiting: deque[tuple[str, ...]], entry: Entry, level: int, depth: int, tally: Tally) -> None:
    if entry.parts[-1] in CLOSED:
        tally.closed.append(entry.parts[-1] + "/")
    elif level >= min(depth, MOST_DEPTH):
        tally.too_deep += 1
    else:
        waiting.append(entry.parts)


def _entries(root: int, at: tuple[str, ...], tally: Tally) -> list[Entry]:
    try:
        with beneath.folder(root, at) as fd:
            return _scan(fd, at, tally)
    except (ToolRefused, OSError):
        tally.unreadable += 1
        return []


def _scan(fd: int, at: tuple[str, ...], tally: Tally) -> list[Entry]:
    entries: list[Entry] = []
    with os.scandir(fd) as listing:
        for item in listing:
            if item.name.casefold() == PRIVATE:
                continue
            if len(entries) >= _MOST_IN_FOLDER:
                tally.cut_folders += 1
                break
            try:
                seen = item.stat(follow_symlinks=False)
            except OSError:
                tally.unreadable += 1
                continue
            entries.append(Entry((*at, item.name), beneath.kind_of(seen.st_mode), seen.st_size, seen.st_mtime))
    return sorted(entries, key=lambda entry: entry.parts[-1])

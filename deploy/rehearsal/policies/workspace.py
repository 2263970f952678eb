"""Owns what the results of tools say about the workspace: folders and files seen, files read, history, matches."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from deploy.rehearsal.policies.kinds import skipped
from deploy.rehearsal.policies.view import Ran, normal

FOOTER: Final = re.compile(r"^\[.*\b(?:shown|left out|cut|more|truncated|omitted|read on|nothing)\b.*\]$")
NUMBERED: Final = re.compile(r"^\s*\d+(?:\t|→|\| ?|: )")


@dataclass(slots=True)
class File:
    path: str
    size: int | None = None
    modified: str = ""


@dataclass(slots=True)
class Read:
    """Lines of a file with their numbers, and what the tool said it left out."""

    path: str
    lines: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    left_out: str | None = None

    @property
    def text(self) -> str:
        return "\n".join(line for _, line in self.lines)


@dataclass(slots=True)
class Workspace:
    files: dict[str, File] = field(default_factory=dict[str, File])
    folders: dict[str, int] = field(default_factory=dict[str, int])
    # Folders whose entries were asked for, by how many levels.
    listed: dict[str, int] = field(default_factory=dict[str, int])
    cut: set[str] = field(default_factory=set[str])
    reads: dict[str, Read] = field(default_factory=dict[str, Read])
    asked: set[str] = field(default_factory=set[str])
    history: list[str] = field(default_factory=list[str])
    # Entries that machines keep for themselves: counted, and never gone into.
    hidden: int = 0
    matches: list[str] = field(default_factory=list[str])
    failures: list[str] = field(default_factory=list[str])

    def unlisted(self) -> list[str]:
        """Folders seen whose entries were not shown yet, shallow ones first."""
        parents = {path.rpartition("/")[0] for path in (*self.files, *self.folders)}
        waiting = [
            folder
            for folder in self.folders
            if folder not in self.listed and folder not in parents and not self._shown_within(folder)
        ]
        return sorted(waiting, key=lambda folder: (folder.count("/"), folder))

    def _shown_within(self, folder: str) -> bool:
        """Whether a listing from further up went deep enough to have shown this folder as empty."""
        for root, depth in self.listed.items():
            inside = root == "." or folder.startswith(f"{root}/")
            level = folder.count("/") + 1 - (0 if root == "." else root.count("/") + 1)
            if inside and level < depth and root not in self.cut:
                return True
        return False


def gather(ran: Iterable[Ran]) -> Workspace:
    """What these calls have shown."""
    known = Workspace()
    for each in ran:
        if each.role == "read":
            known.asked.add(each.path)
        if each.role == "list":
            # A folder that cannot be listed is not asked for again.
            depth = each.input.get("depth")
            known.listed[each.path] = depth if isinstance(depth, int) else 1
        if each.is_error:
            known.failures.append(
                f"{each.name} {each.path}: {each.text.strip().splitlines()[0][:160] if each.text.strip() else 'failed'}"
            )
            continue
        match each.role:
            case "list":
                _list(known, each)
            case "read":
                _read(known, each)
            case "log":
                known.history += _plain_lines(each.text)
            case "search":
                known.matches += _plain_lines(each.text)
            case _:
                pass
    return known


def _plain_lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip() and not line.startswith("[")]


def _list(known: Workspace, ran: Ran) -> None:
    for line in ran.text.splitlines():
        if line.startswith("["):
            known.cut.add(ran.path)
            continue
        name, *rest = [part.strip() for part in line.split("\t")]
        if not name:
            continue
        path = normal(name)
        if ran.path != "." and not path.startswith(f"{ran.path}/"):
            path = f"{ran.path}/{path}"
        if skipped(path):
            known.hidden += 1
        elif name.endswith("/"):
            known.folders[path] = path.count("/")
        else:
            size = int(rest[0]) if rest and rest[0].isdigit() else None
            known.files[path] = File(path, size, rest[1] if len(rest) > 1 else "")


def _read(known: Workspace, ran: Ran) -> None:
    lines = ran.text.splitlines()
    read = known.reads.setdefault(ran.path, Read(ran.path))
    read.left_out = None
    if lines and FOOTER.match(lines[-1]):
        read.left_out = lines.pop().strip("[]")
    if lines and sum(NUMBERED.match(line) is not None for line in lines) >= len(lines) * 0.9 > 2:
        lines = [NUMBERED.sub("", line, count=1) for line in lines]
    offset = ran.input.get("offset")
    first = offset if isinstance(offset, int) and offset > 0 else 1
    read.lines += list(enumerate(lines, first))

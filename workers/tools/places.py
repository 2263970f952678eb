"""A path as the model writes it becomes a root and plain names; no absolute path and no `..` reaches the system.

The model sees one tree: the workspace, and under `input/` the attached folder where there is one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from workers.tools import beneath
from workers.tools.context import ToolContext, ToolRefused

INPUT = "input"
CHILDREN = "children"
_OF_CHILD = re.compile(r"[0-9a-f]{8}-\d+-\d+-\d+(?:\.report\.md)?$", re.IGNORECASE)
"""The folder of a child, and what it reported: its parent reads there."""
PRIVATE = ".nightshift"
"""The state of a local stack: its tokens and passwords are nobody's to read, though the folder may be attached."""
_MOST_CHARS = 16_384
_MOST_PARTS = 1_000
_MOST_NAME_BYTES = 255


@dataclass(frozen=True, slots=True)
class Place:
    """`parts` are names below the attached folder or the workspace; `shown` is the whole path for the model."""

    attached: bool
    parts: tuple[str, ...]

    @property
    def under(self) -> str:
        """What goes before a path below the root to make it the model's."""
        return f"{INPUT}/" if self.attached else ""

    @property
    def shown(self) -> str:
        return "/".join((INPUT, *self.parts) if self.attached else self.parts) or "."


def locate(context: ToolContext, path: str) -> Place:
    """The place that `path` names. Raises `ToolRefused` for what could lead out of a root or is no usable name."""
    parts = _parts(path)
    if context.attached is not None and parts and parts[0] == INPUT:
        return Place(attached=True, parts=parts[1:])
    return Place(attached=False, parts=parts)


def locate_for_writing(context: ToolContext, path: str) -> Place:
    place = locate(context, path)
    if place.attached:
        raise ToolRefused("input/ is read-only; write to another path of the workspace")
    if not place.parts:
        raise ToolRefused("a file name is needed")
    if len(place.parts) > 1 and place.parts[0] == CHILDREN and _OF_CHILD.match(place.parts[1]):
        raise ToolRefused("what children work on and report is theirs to write; write to another path")
    return place


@contextmanager
def open_root(context: ToolContext, place: Place) -> Generator[int]:
    """A descriptor of the folder that `place` lies in, open while the block runs."""
    root = context.attached if place.attached else context.workspace
    fd = _open_root(root, "the attached folder" if place.attached else "the workspace")
    try:
        if place.attached:
            beneath.must_be_open(fd, INPUT)
            beneath.must_be_outside(fd, INPUT)
        yield fd
    finally:
        os.close(fd)


def _open_root(root: Path | None, name: str) -> int:
    if root is None:
        raise ToolRefused(f"{name} is not there")
    try:
        return os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise ToolRefused(f"{name} is not there any more, or may not be read") from error


def _parts(path: str) -> tuple[str, ...]:
    if len(path) > _MOST_CHARS:
        raise ToolRefused(f"the path is {len(path):,} characters long; at most {_MOST_CHARS:,} are taken")
    if any(_unfit(character) for character in path):
        raise ToolRefused("the path holds a control character or half a character; such names cannot be opened")
    if path.startswith("/"):
        raise ToolRefused("paths are relative to the workspace; leave out the leading /")
    parts = tuple(part for part in path.split("/") if part not in ("", "."))
    if ".." in parts:
        raise ToolRefused("paths may not contain ..; name the file from the top of the workspace")
    if any(part.casefold() == PRIVATE for part in parts):
        raise ToolRefused(f"{PRIVATE} holds the service's own state and is not open to tools")
    if len(parts) > _MOST_PARTS:
        raise ToolRefused(f"the path has {len(parts):,} levels; at most {_MOST_PARTS:,} are taken")
    if any(len(part.encode()) > _MOST_NAME_BYTES for part in parts):
        raise ToolRefused(f"a name in the path is longer than {_MOST_NAME_BYTES} bytes")
    return parts


def _unfit(character: str) -> bool:
    code = ord(character)
    return code < 0x20 or 0x7F <= code < 0xA0 or 0xD800 <= code <= 0xDFFF

"""From what a tool says it touches to areas that can be compared: paths with their links resolved, as they are now.

Asked right before the calls run, since an earlier one of the batch may have made a folder. Nothing is opened: a pipe
or a device is looked at and no more. Whatever cannot be told is None, and the call runs alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import assert_never

from workers.tools import arguments
from workers.tools.context import ToolContext, ToolRefused
from workers.tools.places import Place, locate
from workers.tools.segments import Area, Touched, area
from workers.tools.tool import Tool
from workers.tools.touching import Files, Thing, What

_Resolve = Callable[[ToolContext, Place], Iterable[Area]]
_NO_FILE = "\0"
"""Before the name of what is no file: no path begins so."""


def of_call(context: ToolContext, tool: Tool | None, arguments_text: str) -> Touched | None:
    """What this call touches as things stand; None for one that waits, one that cannot be read, or cannot tell."""
    if tool is None or tool.touches is None or tool.waits is not None:
        return None
    try:
        touch = tool.touches(arguments.parse(arguments_text, tool.schema))
        if touch is None:
            return None
        return Touched(tuple(_all(context, touch.reads, _read)), tuple(_all(context, touch.writes, _written)))
    except (ToolRefused, OSError, ValueError):
        return None


def _all(context: ToolContext, named: Iterable[What], of_place: _Resolve) -> Iterable[Area]:
    for what in named:
        match what:
            case Thing(name):
                yield area((_NO_FILE, name))
            case Files(path):
                yield from of_place(context, locate(context, path))
            case _:
                assert_never(what)


def _read(context: ToolContext, place: Place) -> Iterable[Area]:
    yield _area(_root(context, place), place.parts)
    if not place.attached and not place.parts and context.attached is not None:
        yield _area(context.attached, ())


def _written(context: ToolContext, place: Place) -> Iterable[Area]:
    """The outermost folder that would be made is written too: whoever looks beside it sees it come."""
    root = _root(context, place)
    missing = next(
        (depth for depth in range(1, len(place.parts) + 1) if not os.path.lexists(root.joinpath(*place.parts[:depth]))),
        len(place.parts),
    )
    yield _area(root, place.parts[:missing])


def _root(context: ToolContext, place: Place) -> Path:
    root = context.attached if place.attached else context.workspace
    if root is None:
        raise ToolRefused("there is no such folder")
    return root


def _area(root: Path, parts: Iterable[str]) -> Area:
    return area(Path(os.path.realpath(root.joinpath(*parts))).parts)

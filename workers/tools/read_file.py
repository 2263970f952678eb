"""The tool `read_file`: a window of a file's lines; mail and calendars as a person reads them."""

from __future__ import annotations

import json
import os
from typing import cast

from shared.values import Repeat
from workers.tools import beneath, child, plain, window
from workers.tools.context import Arguments, ToolContext, ToolRefused, ToolResult, check_going
from workers.tools.places import Place, locate, open_root
from workers.tools.tool import Tool, flag, integer, text
from workers.tools.touching import Files, Touch
from workers.tools.view import View, view_of

_CAP = 40_000
_MOST_LINES = 2_000
_RENDER_S = 20.0


def run(context: ToolContext, arguments: Arguments) -> ToolResult:
    """The text; when it is not all there, a last line `[lines A-B of N shown; read on with offset=B+1]`."""
    place = locate(context, text(arguments, "path", ""))
    first = integer(arguments, "offset", 1)
    most = integer(arguments, "limit", _MOST_LINES)
    with open_root(context, place) as root, beneath.regular_file(root, place.parts, place.under) as fd:
        start = plain.head(fd)
        kind = plain.sniff(start)
        if isinstance(kind, plain.Binary):
            return ToolResult(
                f"[{place.shown} is {kind.kind}, {os.fstat(fd).st_size:,} bytes, and cannot be read as text]"
            )
        view = View.PLAIN if flag(arguments, "raw") else view_of(place.parts, start)
        if view is View.PLAIN:
            return _plain(context, fd, kind, first, most)
        return _rendered(context, place, fd, view, first, most)


def _plain(context: ToolContext, fd: int, kind: plain.Text, first: int, most: int) -> ToolResult:
    taken = window.take(plain.chunks(fd, kind), first=first, most_lines=most, most_chars=_CAP, over=context.over)
    check_going(context)
    shown, note = window.render(taken, plain.unread(fd))
    return ToolResult(shown, note=note)


def _rendered(context: ToolContext, place: Place, fd: int, view: View, first: int, most: int) -> ToolResult:
    request = {"job": "render", "view": view, "first": first, "lines": most, "chars": _CAP}
    answer = child.ask(context, request, [fd], seconds=_RENDER_S, most=_CAP * 8)
    if answer.end != 0:
        raise ToolRefused(f"{place.shown} could not be read as {view}; raw: true reads it as it stands")
    read = cast("dict[str, str | None]", json.loads(answer.data))
    return ToolResult(str(read["text"]), note=read["note"])


TOOL = Tool(
    name="read_file",
    description=(
        "Read a text file. Mail (mbox, Maildir, .eml) and calendars (.ics) are shown decoded; "
        "raw: true shows them as they stand."
    ),
    schema={
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "offset": {"type": "integer", "minimum": 1, "description": "first line, from 1"},
            "limit": {"type": "integer", "minimum": 1, "maximum": _MOST_LINES, "description": "lines"},
            "raw": {"type": "boolean"},
        },
        "required": ["path"],
        "additionalProperties": False,
    },
    repeat=Repeat.REPEATABLE,
    run=run,
    cap_chars=_CAP,
    foreign=True,
    touches=lambda arguments: Touch(reads=(Files(text(arguments, "path", "")),)),
)

"""The tool `list_files`: what is in a folder, one entry a line, shallow entries first when not all fit."""

from __future__ import annotations

from collections.abc import Iterator

from shared.values import Repeat
from workers.tools import shown
from workers.tools.context import Arguments, ToolContext, ToolResult, check_going
from workers.tools.folders import MOST_DEPTH, Entry, Tally, walk
from workers.tools.places import INPUT, Place, locate, open_root
from workers.tools.tool import Tool, integer, text
from workers.tools.touching import Files, Touch

_CAP = 40_000
_FOOTER = 400
_MOST_ENTRIES = 1_000


def run(context: ToolContext, arguments: Arguments) -> ToolResult:
    """Lines `path<TAB>size<TAB>modified`, sorted; folders end in `/`; a last line in brackets says what is missing."""
    place = locate(context, text(arguments, "path", "."))
    depth = integer(arguments, "depth", 2)
    tally = Tally()
    lines: list[str] = []
    room = _CAP - _FOOTER
    left_out = 0
    for line in _lines(context, place, depth, tally):
        room -= len(line) + 1
        if room < 0 or len(lines) >= _MOST_ENTRIES:
            room = -1
            left_out += 1
        else:
            lines.append(line)
    check_going(context)
    lines.sort()
    told = [f"{left_out:,} more entries left out; name a folder or lower depth"] if left_out else []
    told += tally.sentences()
    if not lines and not told:
        told = ["empty folder"]
    footer = [f"[{'; '.join(told)}]"[:_FOOTER]] if told else []
    return ToolResult("\n".join(lines + footer), note="; ".join(told) or None)


def _lines(context: ToolContext, place: Place, depth: int, tally: Tally) -> Iterator[str]:
    whole = not place.attached and not place.parts and context.attached is not None
    with open_root(context, place) as root:
        for entry in walk(root, place.parts, depth, context.over, tally, place.under):
            if not (whole and entry.parts[0] == INPUT):
                yield _line(place.under, entry)
    if whole:
        yield f"{INPUT}/\t-\t-"
        if depth > 1:
            yield from _lines(context, Place(attached=True, parts=()), depth - 1, tally)


def _line(under: str, entry: Entry) -> str:
    path = under + shown.name(entry.parts)
    moment = shown.moment(entry.modified)
    match entry.kind:
        case "folder":
            return f"{path}/\t-\t{moment}"
        case "file":
            return f"{path}\t{entry.size}\t{moment}"
        case other:
            return f"{path}\t{other}\t{moment}"


TOOL = Tool(
    name="list_files",
    description=(
        "List a folder of the workspace: path, size and time of change of each entry. "
        "An attached folder is at input/. Sizes in bytes, times in UTC."
    ),
    schema={
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "folder; default the workspace"},
            "depth": {"type": "integer", "minimum": 1, "maximum": MOST_DEPTH, "description": "levels; default 2"},
        },
        "additionalProperties": False,
    },
    repeat=Repeat.REPEATABLE,
    run=run,
    cap_chars=_CAP,
    touches=lambda arguments: Touch(reads=(Files(text(arguments, "path", ".")),)),
)

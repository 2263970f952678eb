"""The tool `search_files`: lines that match a linear-time pattern, found in a child process."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import cast

from shared.values import Repeat
from workers.tools import child
from workers.tools.context import Arguments, ToolContext, ToolRefused, ToolResult
from workers.tools.places import Place, locate, open_root
from workers.tools.tool import Tool, text
from workers.tools.touching import Files, Touch

_CAP = 40_000
_SEARCH_S = 10.0


def run(context: ToolContext, arguments: Arguments) -> ToolResult:
    """Lines `path:line: text`, and a last line in brackets on what was searched and what was left out."""
    place = locate(context, text(arguments, "path", "."))
    request = {
        "job": "search",
        "pattern": text(arguments, "pattern", ""),
        "glob": text(arguments, "glob", ""),
        "chars": _CAP,
    }
    whole = not place.attached and not place.parts and context.attached is not None
    places = [place, Place(attached=True, parts=())] if whole else [place]
    with ExitStack() as stack:
        fds = [stack.enter_context(open_root(context, one)) for one in places]
        asked = [
            {"parts": one.parts, "under": one.under, "without_input": whole and not one.attached} for one in places
        ]
        answer = child.ask(context, {**request, "places": asked}, fds, seconds=_SEARCH_S, most=_CAP * 8)
    if answer.end != 0:
        raise ToolRefused("the search was stopped by its bounds on memory or time; narrow path, glob or pattern")
    found = cast("dict[str, str]", json.loads(answer.data))
    if "refused" in found:
        raise ToolRefused(found["refused"])
    return ToolResult(found["text"], note=found["note"])


TOOL = Tool(
    name="search_files",
    description=(
        "Find lines that match a regular expression (RE2 syntax; (?i) ignores case) in the files under a path."
    ),
    schema={
        "type": "object",
        "properties": {
            "pattern": {"type": "string"},
            "path": {"type": "string", "description": "folder or file; default everything"},
            "glob": {"type": "string", "description": "only files like this, e.g. *.md"},
        },
        "required": ["pattern"],
        "additionalProperties": False,
    },
    repeat=Repeat.REPEATABLE,
    run=run,
    cap_chars=_CAP,
    foreign=True,
    touches=lambda arguments: Touch(reads=(Files(text(arguments, "path", ".")),)),
)

"""The tool `skills`: how this team does certain things: which there are, and one of them, read as any file is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from shared.values import Repeat
from workers.prompt import skills as index
from workers.prompt.data import without_suspects
from workers.tools import read_file, shown
from workers.tools.context import Arguments, ToolContext, ToolRefused, ToolResult, store_of
from workers.tools.tool import Tool, integer, text
from workers.tools.touching import Thing, Touch, always

_MOST_LISTED = 300


def run(context: ToolContext, arguments: Arguments) -> ToolResult:
    """The skill's text, or a window of a file beside it; without a name what skills there are. No link leads out of
    the folder of skills."""
    folder = store_of(context).settings.skills_folder
    if "name" not in arguments:
        return _listed(folder)
    name, file = text(arguments, "name", ""), text(arguments, "file", index.FILE)
    if not index.NAME.fullmatch(name) or not (folder / name / index.FILE).is_file():
        known = ", ".join(skill.name for skill in index.index(folder)[:50])
        raise ToolRefused(f"there is no such skill; there {f'are {known}' if known else 'is none'}")
    inside = replace(context, workspace=folder, attached=None)
    return read_file.run(inside, {"path": f"{name}/{file}", "offset": integer(arguments, "offset", 1)})


def _listed(folder: Path) -> ToolResult:
    """One skill a line, less what reads like an instruction, as in the prompt. The prompt has those that there were
    when the conversation began, and as many as fit."""
    found = index.index(folder)
    kept, _ = without_suspects("skills", [f"{one.name}: {one.description}" for one in found[:_MOST_LISTED]])
    lines = [shown.name([line]) for line in kept]
    more = [f"{len(found) - _MOST_LISTED:,} more are not listed"] if len(found) > _MOST_LISTED else []
    if not found:
        more = ["there are no skills"]
    return ToolResult("\n".join([*lines, *(f"[{one}]" for one in more)]))


TOOL = Tool(
    name="skills",
    description="Read a skill; file reads another file of its folder. Without a name: which skills there are.",
    schema={
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 64},
            "file": {"type": "string"},
            "offset": {"type": "integer", "minimum": 1, "description": "first line, from 1"},
        },
        "additionalProperties": False,
    },
    repeat=Repeat.REPEATABLE,
    run=run,
    cap_chars=read_file.TOOL.cap_chars,
    touches=always(Touch(reads=(Thing("skills"),))),
)

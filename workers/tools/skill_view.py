"""The tool `skill_view`: how this team does a certain thing, as its folder of skills has it. Read as any file is."""

from __future__ import annotations

from dataclasses import replace

from shared.values import Repeat
from workers.prompt import skills
from workers.tools import read_file
from workers.tools.context import Arguments, ToolContext, ToolRefused, ToolResult, store_of
from workers.tools.tool import Tool, integer, text


def run(context: ToolContext, arguments: Arguments) -> ToolResult:
    """The skill's text, or a window of a file beside it. No link leads out of the folder of skills."""
    name, file = text(arguments, "name", ""), text(arguments, "file", skills.FILE)
    folder = store_of(context).settings.skills_folder
    if not skills.NAME.fullmatch(name) or not (folder / name / skills.FILE).is_file():
        known = ", ".join(skill.name for skill in skills.index(folder)[:50])
        raise ToolRefused(f"there is no such skill; there {f'are {known}' if known else 'is none'}")
    inside = replace(context, workspace=folder, attached=None)
    return read_file.run(inside, {"path": f"{name}/{file}", "offset": integer(arguments, "offset", 1)})


TOOL = Tool(
    name="skill_view",
    description="Read a skill that the system prompt lists; file reads another file of its folder.",
    schema={
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 64},
            "file": {"type": "string"},
            "offset": {"type": "integer", "minimum": 1, "description": "first line, from 1"},
        },
        "required": ["name"],
        "additionalProperties": False,
    },
    repeat=Repeat.REPEATABLE,
    run=run,
    cap_chars=read_file.TOOL.cap_chars,
)

"""The tool `write_file`: a whole file, there at once or not at all.

`Repeat.ONCE`, though the same content twice is the same file: between the lost run and its repeat another may have
changed the file, and the repeat would take that change away unseen. The model is told and can look.
"""

from __future__ import annotations

from shared.text import clean_text
from shared.values import Repeat
from workers.sandbox.alone import must_be_alone
from workers.tools import putting
from workers.tools.context import Arguments, ToolContext, ToolRefused, ToolResult, check_acting
from workers.tools.places import locate_for_writing, open_root
from workers.tools.tool import Tool, text
from workers.tools.touching import Files, Touch

_MOST_BYTES = 1_000_000
_MOST_DEPTH = 64


def run(context: ToolContext, arguments: Arguments) -> ToolResult:
    """The file holds exactly the content, its folders made where missing. Links are neither followed nor replaced."""
    place = locate_for_writing(context, text(arguments, "path", ""))
    must_be_alone(context, place.parts)
    content = clean_text(text(arguments, "content", "")).encode()
    if len(content) > _MOST_BYTES:
        raise ToolRefused(f"the content is {len(content):,} bytes; at most {_MOST_BYTES:,} are written, so split it")
    if len(place.parts) > _MOST_DEPTH:
        raise ToolRefused(f"the path has {len(place.parts)} levels; at most {_MOST_DEPTH} are made")
    with open_root(context, place) as root:
        replaced = putting.put(root, place.parts, content, lambda: check_acting(context))
    return ToolResult(f"{'replaced' if replaced else 'written'}: {place.shown} ({len(content):,} bytes)")


TOOL = Tool(
    name="write_file",
    description="Write a whole text file in the workspace, replacing what was there. input/ is read-only.",
    schema={
        "type": "object",
        "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
        "required": ["path", "content"],
        "additionalProperties": False,
    },
    repeat=Repeat.ONCE,
    run=run,
    cap_chars=2_000,
    look="read_file shows what stands there",
    touches=lambda arguments: Touch(writes=(Files(text(arguments, "path", "")),)),
)

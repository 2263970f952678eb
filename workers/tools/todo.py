"""The tool `todo`: the model's list of what is done and what is left.

It keeps no file. The list is echoed whole, so the transcript is its memory: a rewind takes the list back with the
messages, a takeover by another worker loses nothing, and two turns cannot write over each other. A file in the
workspace would have none of the three.
"""

from __future__ import annotations

from typing import cast

from shared.values import Repeat
from workers.tools.context import Arguments, ToolContext, ToolRefused, ToolResult
from workers.tools.tool import Tool
from workers.tools.touching import NOTHING, always

_MOST_ITEMS = 100
_MOST_CHARS = 300


def run(context: ToolContext, arguments: Arguments) -> ToolResult:
    """The list, one item a line, and how many are open."""
    del context
    items = cast("list[dict[str, object]]", arguments["items"])
    lines = [_line(index, item) for index, item in enumerate(items)]
    open_items = sum(item["done"] is False for item in items)
    return ToolResult("\n".join([*lines, f"[{open_items} open, {len(items) - open_items} done]"]))


def _line(index: int, item: dict[str, object]) -> str:
    words = " ".join(str(item["text"]).split())
    if not words:
        raise ToolRefused(f"items[{index}].text is empty")
    if len(words) > _MOST_CHARS:
        raise ToolRefused(f"items[{index}].text is {len(words)} characters long; at most {_MOST_CHARS} are taken")
    return f"[{'x' if item['done'] else ' '}] {words}"


TOOL = Tool(
    name="todo",
    description="Write down the whole list of what is to do; each call replaces the list.",
    schema={
        "type": "object",
        "properties": {
            "items": {
                "type": "array",
                "maxItems": _MOST_ITEMS,
                "items": {
                    "type": "object",
                    "properties": {"text": {"type": "string"}, "done": {"type": "boolean"}},
                    "required": ["text", "done"],
                    "additionalProperties": False,
                },
            }
        },
        "required": ["items"],
        "additionalProperties": False,
    },
    repeat=Repeat.REPEATABLE,
    run=run,
    cap_chars=40_000,
    touches=always(NOTHING),
)

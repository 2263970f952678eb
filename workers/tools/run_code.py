"""The tool `run_code`: Python of the model's, in the sandbox, with the session's reading tools as functions."""

from __future__ import annotations

import socket
from pathlib import Path

from shared.values import Repeat
from workers.sandbox import boxed, inside, serving, wall
from workers.sandbox.serving import NOTHING
from workers.sandbox.told import told
from workers.tools.context import Arguments, ToolContext, ToolRefused, ToolResult
from workers.tools.tool import Tool, integer, text

_CAP = 50_000
MOST_S = 300
_DEFAULT_S = 120
_MOST_CODE = 100_000
_BEGINNING = Path(inside.__file__).read_text("utf-8")


def run(context: ToolContext, arguments: Arguments) -> ToolResult:
    """The code was run to its end, or ended at its time; what it printed, and how it ended."""
    code = text(arguments, "code", "")
    if not code.strip():
        raise ToolRefused("there is no code")
    if len(code) > _MOST_CODE:
        raise ToolRefused(f"the code is {len(code):,} characters long; at most {_MOST_CODE:,} are run")
    seconds = min(integer(arguments, "timeout_s", _DEFAULT_S), MOST_S)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        command = ("-I", "-S", "-B", "-c", _BEGINNING, "{fd}")
        wanted = boxed.Wanted(command, float(seconds), python=True, passed=(theirs.fileno(),))
        reading = serving.Reading(context, context.may_read or NOTHING, ours, code)
        ended, output = boxed.run(context, wall.way(), wanted, reading)
    return told(ended, output.text(), seconds)


TOOL = Tool(
    name="run_code",
    description=(
        "Run Python in the sandbox of terminal. Your reading tools (read_file, list_files, search_files, …) are "
        "functions there that return text and raise ToolError: read and sift in bulk in one call. Only what is printed "
        "comes back."
    ),
    schema={
        "type": "object",
        "properties": {
            "code": {"type": "string"},
            "timeout_s": {"type": "integer", "minimum": 1, "maximum": MOST_S},
        },
        "required": ["code"],
        "additionalProperties": False,
    },
    repeat=Repeat.ONCE,
    run=run,
    cap_chars=_CAP,
    foreign=True,
    look="look at what the code would have changed",
    run_s=MOST_S + 2 * boxed.GRACE_S,
    lacks=wall.lacks_python,
)

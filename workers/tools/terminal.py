"""The tool `terminal`: a command of the model's, in the sandbox."""

from __future__ import annotations

from shared.values import Repeat
from workers.sandbox import boxed, wall
from workers.sandbox.told import told
from workers.tools.context import Arguments, ToolContext, ToolRefused, ToolResult
from workers.tools.tool import Tool, integer, text

_CAP = 50_000
MOST_S = 300
_DEFAULT_S = 120
_MOST_COMMAND = 60_000


def run(context: ToolContext, arguments: Arguments) -> ToolResult:
    """The command was run to its end, or ended at its time; its output, how it ended, and behind which wall."""
    command = text(arguments, "command", "")
    if not command.strip():
        raise ToolRefused("an empty command; say what to run")
    if "\x00" in command or len(command.encode()) > _MOST_COMMAND:
        raise ToolRefused(f"a command has at most {_MOST_COMMAND:,} bytes and no NUL; put a long one into a file")
    seconds = min(integer(arguments, "timeout_s", _DEFAULT_S), MOST_S)
    wanted = boxed.Wanted(("/bin/bash", "-c", command), float(seconds))
    ended, output = boxed.run(context, wall.way(), wanted)
    return told(ended, output.text(), seconds)


TOOL = Tool(
    name="terminal",
    description=(
        "Run a bash command in a sandbox: your workspace is writable, input/ read-only, no network, nothing else of "
        "the host. Each call is a fresh shell in the workspace; files stay, processes end with the call."
    ),
    schema={
        "type": "object",
        "properties": {
            "command": {"type": "string"},
            "timeout_s": {"type": "integer", "minimum": 1, "maximum": MOST_S},
        },
        "required": ["command"],
        "additionalProperties": False,
    },
    repeat=Repeat.ONCE,
    run=run,
    cap_chars=_CAP,
    look="look at what the command would have changed",
    run_s=MOST_S + 2 * boxed.GRACE_S,
    lacks=wall.lacks,
)

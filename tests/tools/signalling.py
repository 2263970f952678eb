"""A process with an effect: it writes one word to the pipe that it was given. It runs as the job `git` does, in a child
of the launcher and under its seal; no tool of the product starts it."""

from __future__ import annotations

import os
from pathlib import Path

from shared.values import Repeat
from workers.tools import child
from workers.tools.context import Arguments, ToolContext, ToolResult
from workers.tools.tool import Tool

SHELL = "/bin/sh"
NAME = "signal"
WORD = b"happened\n"


def act(context: ToolContext, pipe: int, script: str = "echo happened >&2") -> child.Answer:
    """As a tool would run it. Raises ToolStopped where it was not begun, ToolLost where nobody knows."""
    (context.workspace / ".git").mkdir(parents=True, exist_ok=True)
    root = os.open(context.workspace, os.O_RDONLY)
    request: dict[str, object] = {
        "job": "git", "program": SHELL, "environment": {}, "arguments": ["sh", "-c", script],
    }  # fmt: skip
    try:
        return child.ask(context, request, [root, pipe], seconds=30, most=1000)
    finally:
        os.close(root)


def said(pipe: int) -> bytes:
    """What stands in the pipe at this moment."""
    os.set_blocking(pipe, False)
    try:
        return os.read(pipe, 4096)
    except BlockingIOError:
        return b""


def tool(fifo: Path) -> Tool:
    """May run only once, and writes to the named pipe."""

    def run(context: ToolContext, arguments: Arguments) -> ToolResult:
        del arguments
        pipe = os.open(fifo, os.O_WRONLY)
        try:
            act(context, pipe)
        finally:
            os.close(pipe)
        return ToolResult("signalled")

    return Tool(
        name=NAME,
        description="A test's tool: says a word, once.",
        schema={"type": "object", "properties": {}, "additionalProperties": False},
        repeat=Repeat.ONCE,
        run=run,
        cap_chars=1000,
    )

"""An effect that is seen from outside: one word in a pipe, written by a process that runs as the job `git` does, in a
child of the launcher and under its seal, or by the worker itself. No tool of the product does it."""

from __future__ import annotations

import os
from pathlib import Path

from shared.values import Repeat
from workers.pause import Point
from workers.tools import child
from workers.tools.context import Arguments, ToolContext, ToolResult, check_acting
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


def tool(fifo: Path, point: Point) -> Tool:
    """May run only once, and writes to the named pipe: at `starting` by a process, at `in_tool` in the worker, after
    its last check."""

    def run(context: ToolContext, arguments: Arguments) -> ToolResult:
        del arguments
        pipe = os.open(fifo, os.O_WRONLY)
        try:
            if point is Point.STARTING:
                act(context, pipe)
            else:
                context.pausing(point)
                check_acting(context)
                os.write(pipe, WORD)
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

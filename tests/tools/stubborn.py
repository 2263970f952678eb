"""A process that does not want to end: it ignores SIGTERM, and a child of it left its group, its session and its
parent. It runs as the job `git` does, in a child of the launcher and under its seal; no tool of the product starts it.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

import psutil
import pytest

from deploy.drill.rig import slack
from shared.values import Repeat
from workers.tools import child, dispatch, registry
from workers.tools.context import Arguments, ToolContext, ToolResult
from workers.tools.tool import Tool

PERL = "/usr/bin/perl"
SCRIPT = """
use POSIX; $SIG{TERM} = 'IGNORE'; $SIG{HUP} = 'IGNORE';
if (!fork) { POSIX::setsid(); if (fork) { POSIX::_exit(0) } POSIX::setsid();
  if (!fork) { POSIX::setsid(); sleep 600 } sleep 600 }
sleep %s;
"""


def mark() -> str:
    """A word that is found in the command lines of one test's processes."""
    return f"stubborn-{secrets.token_hex(8)}"


def living(word: str) -> list[int]:
    """Who of these still runs. What is dead and waits for its parent holds nothing any more."""
    return [
        process.pid
        for process in psutil.process_iter(["cmdline", "status"])
        if word in (process.info["cmdline"] or ()) and process.info["status"] != psutil.STATUS_ZOMBIE
    ]


def begun(word: str, seconds: float = 10.0) -> None:
    """Wait until it and both of its detached ones are there."""
    until = time.monotonic() + seconds * slack()
    while len(living(word)) < 3:
        assert time.monotonic() < until, f"only {living(word)} began"
        time.sleep(0.02)


def gone(word: str, seconds: float = 5.0) -> float:
    """Wait until none is left; returns the seconds that took."""
    began = time.monotonic()
    while left := living(word):
        assert time.monotonic() - began < seconds * slack(), f"still there: {left}"
        time.sleep(0.02)
    return time.monotonic() - began


def run(context: ToolContext, word: str, *, lives_s: float = 600) -> child.Answer:
    """As a tool would run it. Raises ToolStopped where the turn is cancelled."""
    with _folder(context.workspace) as (root, complaints):
        request: dict[str, object] = {
            "job": "git", "program": PERL, "environment": {},
            "arguments": ["perl", "-e", SCRIPT % lives_s, word],
        }  # fmt: skip
        return child.ask(context, request, [root, complaints], seconds=60, most=1000)


def _run_tool(context: ToolContext, arguments: Arguments) -> ToolResult:
    run(context, str(arguments["word"]))
    return ToolResult("it ended by itself")


TOOL = Tool(
    name="stubborn",
    description="A test's tool: runs until it is killed.",
    schema={
        "type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"],
        "additionalProperties": False,
    },
    repeat=Repeat.ONCE,
    run=_run_tool,
    cap_chars=1000,
)  # fmt: skip


def offer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put it among the tools of this process for one test."""
    tools = MappingProxyType({**registry.TOOLS, TOOL.name: TOOL})
    monkeypatch.setattr(registry, "TOOLS", tools)
    monkeypatch.setattr(dispatch, "TOOLS", tools)


@contextmanager
def _folder(workspace: Path) -> Generator[tuple[int, int]]:
    (workspace / ".git").mkdir(parents=True, exist_ok=True)
    root = os.open(workspace, os.O_RDONLY)
    complaints = os.open(os.devnull, os.O_WRONLY)
    try:
        yield root, complaints
    finally:
        os.close(root)
        os.close(complaints)

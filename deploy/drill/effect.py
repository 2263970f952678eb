"""The drill's tools: each call is one line in a log that is synced to disk, which outlives whatever made it.

They exist in a drill's workers alone, and act in the worker's process, as the product's own tool that writes does. Two
may run once only. One is keyed: the far side, which here is the log itself, has the effect of each key once. One is
checkable: the log is read for its run. The log is outside of every workspace, and nothing else reads it but the drill.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from shared.values import Repeat
from workers.pause import Pauses, Point
from workers.tools import registry
from workers.tools.context import Arguments, ToolContext, ToolResult
from workers.tools.tool import Check, Checked, DidNotHappen, Happened, Tool

EFFECT, ASKED, KEYED, CHECKED = "effect", "effect_asked", "effect_keyed", "effect_checked"
ONCE = (EFFECT, ASKED)
NAMES = (*ONCE, KEYED, CHECKED)
HAPPENED = "the effect happened"
CHECKED_S = 3.0
"""How long a run of the checkable tool may act: for so long nobody believes that it did not happen."""


class Key(NamedTuple):
    """One tool run: the id that the ledger of effects knows it by."""

    turn: str
    step: int
    ordinal: int


def install(log: Path, pauses: Pauses) -> None:
    """This process has the drill's tools from now on."""
    for tool in tools(log, pauses):
        registry.add(tool)


def tools(log: Path, pauses: Pauses) -> Sequence[Tool]:
    """Once, once where somebody has to allow it, keyed, checkable."""

    def run(context: ToolContext, arguments: Arguments) -> ToolResult:
        del arguments
        pauses.at(Point.IN_TOOL)
        append(log, _key(context))
        return ToolResult(HAPPENED)

    def run_keyed(context: ToolContext, arguments: Arguments) -> ToolResult:
        del arguments
        pauses.at(Point.IN_TOOL)
        append(log, _key(context), idempotency=context.key)
        return ToolResult(HAPPENED)

    def look(context: ToolContext, arguments: Arguments) -> Checked:
        del arguments
        return Happened(ToolResult(HAPPENED)) if logged(log)[_key(context)] else DidNotHappen()

    check = Check("the log of effects", look)
    return (
        *(_tool(name, Repeat.ONCE, run) for name in ONCE),
        _tool(KEYED, Repeat.KEYED, run_keyed),
        _tool(CHECKED, Repeat.CHECKABLE, run, check=check, run_s=CHECKED_S),
    )


def _tool(name: str, repeat: Repeat, run: Any, **more: Any) -> Tool:
    return Tool(
        name=name,
        description="Has an effect in the world, once a call.",
        schema={"type": "object", "properties": {}, "additionalProperties": False},
        repeat=repeat,
        run=run,
        cap_chars=1000,
        **more,
    )


def _key(context: ToolContext) -> Key:
    return Key(context.turn, context.step, context.ordinal)


def append(log: Path, key: Key, idempotency: str | None = None) -> bool:
    """One line, whole and on the disk when this returns. False, and no line, where that idempotency key has one."""
    line = json.dumps({**key._asdict(), "key": idempotency, "pid": os.getpid(), "at": time.time()}) + "\n"
    file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)  # a far side looks for the key and acts in one
        if idempotency is not None and any(row["key"] == idempotency for row in _rows(log)):
            return False
        os.write(file, line.encode())
        os.fsync(file)
        return True
    finally:
        os.close(file)


def logged(log: Path) -> Counter[Key]:
    """How often each run had its effect."""
    return Counter(Key(row["turn"], row["step"], row["ordinal"]) for row in _rows(log))


def _rows(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text("utf-8").splitlines()] if log.exists() else []

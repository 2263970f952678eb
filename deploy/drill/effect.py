"""The drill's tools: each call is one line in a log that is synced to disk, which outlives whatever made it.

They exist in a drill's workers alone. Both may run once only, like the product's own tool that writes, and like that
one they act in the worker's process. The log is outside of every workspace, and nothing ever reads it but the drill.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from shared.values import Repeat
from workers.pause import Pauses, Point
from workers.tools import registry
from workers.tools.context import Arguments, ToolContext, ToolResult
from workers.tools.tool import Tool

EFFECT, ASKED = "effect", "effect_asked"
NAMES = (EFFECT, ASKED)


class Key(NamedTuple):
    """One tool run: the id that the ledger of effects knows it by."""

    turn: str
    step: int
    ordinal: int


def install(log: Path, pauses: Pauses) -> None:
    """This process has the drill's tools from now on."""

    def run(context: ToolContext, arguments: Arguments) -> ToolResult:
        del arguments
        pauses.at(Point.IN_TOOL)
        append(log, Key(context.turn, context.step, context.ordinal))
        return ToolResult("the effect happened")

    for name in NAMES:
        registry.add(
            Tool(
                name=name,
                description="Has an effect in the world, once a call.",
                schema={"type": "object", "properties": {}, "additionalProperties": False},
                repeat=Repeat.ONCE,
                run=run,
                cap_chars=1000,
            )
        )


def append(log: Path, key: Key) -> None:
    """One line, whole and on the disk when this returns."""
    line = json.dumps({**key._asdict(), "pid": os.getpid(), "at": time.time()}) + "\n"
    file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, line.encode())
        os.fsync(file)
    finally:
        os.close(file)


def logged(log: Path) -> Counter[Key]:
    """How often each run had its effect."""
    lines = log.read_text("utf-8").splitlines() if log.exists() else []
    rows = (json.loads(line) for line in lines)
    return Counter(Key(row["turn"], row["step"], row["ordinal"]) for row in rows)

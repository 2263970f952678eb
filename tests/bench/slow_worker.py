"""A worker with one tool more: a read that takes a tenth of a second, as a page or a server does."""

from __future__ import annotations

import sys
import time

from shared.values import Repeat
from workers import process
from workers.tools import registry
from workers.tools.context import Arguments, ToolContext, ToolResult
from workers.tools.tool import Tool
from workers.tools.touching import NOTHING, always

NAME = "slow_read"
READ_S = 0.1


def _read(context: ToolContext, arguments: Arguments) -> ToolResult:
    del context
    time.sleep(READ_S)
    return ToolResult(f"read {arguments['number']}")


def main(argv: list[str]) -> int:
    registry.add(
        Tool(
            NAME, "Reads what is slow.",
            {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"],
             "additionalProperties": False},
            Repeat.REPEATABLE, _read, cap_chars=100, touches=always(NOTHING),
        )
    )  # fmt: skip
    return process.main(argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

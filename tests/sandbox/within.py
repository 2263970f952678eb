"""As a program: a worker's side of one run, as whoever starts it. Prints what the run printed.

Arguments: the tier to use (or `best`), the program's file, what it is given, the workspace, the attached folder or ''.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from shared.boottime import boottime
from shared.sandbox.tiers import Tier
from shared.values import Repeat
from workers.sandbox import boxed, wall
from workers.tools.context import ToolContext


def never() -> bool:
    return False


def context(workspace: Path, attached: Path | None) -> ToolContext:
    return ToolContext("session", "turn", 1, 0, workspace, attached, never, boottime() + 120, repeat=Repeat.ONCE)


def main() -> None:
    tier, program, given, workspace, attached = sys.argv[1:]
    way = wall.way()
    if tier == Tier.CONFINED:
        way = replace(way, tier=Tier.CONFINED, python="/usr/bin/python3", python_folder="")
    command = ("-I", "-S", "-B", "-c", Path(program).read_text("utf-8"), given)
    wanted = boxed.Wanted(command, 60.0, python=True)
    ended, output = boxed.run(context(Path(workspace), Path(attached) if attached else None), way, wanted)
    print(output.text())
    print(f"{ended.code} {ended.why} {ended.tier}", file=sys.stderr)
    sys.exit(ended.code)


if __name__ == "__main__":
    main()

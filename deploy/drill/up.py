"""A stack as `nightshift up` plans it, with a drill's workers: their tools, their points, and at will a proxy on their
way to Postgres."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from deploy.drill import worker
from deploy.local import up
from deploy.local.program import Program
from deploy.local.stack import Stack

EFFECTS_FILE = "effects.log"
PROXY_FILE = "database-url"
"""While there, it holds the address of the database for workers that start."""


def main(argv: list[str]) -> int:
    return up.main(argv, _with_drill_workers)


def _with_drill_workers(stack: Stack) -> None:
    home = stack.home.root
    stack.programs = [_changed(one, home) if one.role == "worker" else one for one in stack.programs]


def _changed(program: Program, home: Path) -> Program:
    return replace(
        program,
        command=lambda: (sys.executable, "-m", worker.__name__),
        environment=_environment(program.environment, home),
    )


def _environment(asked: Callable[[], Mapping[str, str]], home: Path) -> Callable[[], Mapping[str, str]]:
    def found() -> dict[str, str]:
        pauses = {"NIGHTSHIFT_PAUSE_AT": f"armed:{home / 'pauses'}"}
        proxy = home / PROXY_FILE
        through = {"NIGHTSHIFT_DATABASE_URL": proxy.read_text("utf-8")} if proxy.exists() else {}
        return {**asked(), **pauses, **through, worker.EFFECTS: os.fspath(home / EFFECTS_FILE)}

    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""What the tests of the tools share: a workspace and an attached folder side by side, and something outside both."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from shared.boottime import boottime
from shared.values import Repeat
from workers.pause import Point
from workers.tools import dispatch
from workers.tools.context import ToolContext, ToolResult

SECRET = "the-secret-outside"


def never() -> bool:
    return False


def always() -> float:
    return math.inf


def nowhere(point: Point) -> None:
    del point


@dataclass
class Bench:
    """Runs tools in `workspace` and `attached`; `outside` holds `SECRET` in every file and must stay as it is."""

    workspace: Path
    attached: Path
    outside: Path
    with_attached: bool = True
    cancelled: Callable[[], bool] = field(default=never)
    seconds: float = 30.0
    act_until: Callable[[], float] = field(default=always)
    repeat: Repeat = Repeat.REPEATABLE
    pausing: Callable[[Point], object] = field(default=nowhere)

    def context(self) -> ToolContext:
        attached = self.attached if self.with_attached else None
        return ToolContext(
            "session", "turn", 1, 0, self.workspace, attached, self.cancelled, boottime() + self.seconds,
            self.act_until, self.repeat, self._pause,
        )  # fmt: skip

    def _pause(self, point: Point) -> None:
        self.pausing(point)

    def call(self, name: str, text: str) -> ToolResult:
        return dispatch.run_one(self.context(), name, text)

    def run(self, name: str, **arguments: object) -> ToolResult:
        return self.call(name, json.dumps(arguments))

    def text(self, name: str, **arguments: object) -> str:
        result = self.run(name, **arguments)
        assert not result.is_error, result.text
        return result.text

    def error(self, name: str, **arguments: object) -> str:
        result = self.run(name, **arguments)
        assert result.is_error, result.text
        return result.text

    def alone(self) -> Bench:
        return replace(self, with_attached=False)

    def outside_is_untouched(self) -> bool:
        found = {path.relative_to(self.outside).as_posix(): path.read_text() for path in self.outside.rglob("*.txt")}
        return found == {"f.txt": SECRET, "deep/f.txt": SECRET}


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    made = Bench(tmp_path / "workspace", tmp_path / "attached", tmp_path / "outside")
    for folder in (made.workspace, made.attached, made.outside / "deep"):
        folder.mkdir(parents=True)
    for file in (made.outside / "f.txt", made.outside / "deep/f.txt"):
        file.write_text(SECRET)
    return made

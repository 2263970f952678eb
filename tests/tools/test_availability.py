"""What a host lacks for a tool is asked for now and then, and one bad moment takes no tool away."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pytest

from shared.settings import Settings
from shared.values import Repeat
from workers.tools import availability as availability_module
from workers.tools.availability import HICCUP_S, KEPT_S, Availability
from workers.tools.context import Arguments, ToolContext, ToolResult
from workers.tools.tool import Tool

SETTINGS = Settings()


def _never(context: ToolContext, arguments: Arguments) -> ToolResult:
    raise AssertionError((context, arguments))


def _tool(probe: Callable[[Settings], str | None] | None) -> Tool:
    return Tool("probed", "", {"type": "object"}, Repeat.REPEATABLE, _never, cap_chars=1, lacks=probe)


class World:
    """A probe that answers by a list, and a clock that is moved by hand."""

    def __init__(self, *answers: str | Exception | None) -> None:
        self.answers = list(answers)
        self.asked = 0
        self.time = 1000.0
        self.availability = Availability(lambda: self.time)
        self.tool = _tool(self._probe)

    def _probe(self, settings: Settings) -> str | None:
        assert settings is SETTINGS
        self.asked += 1
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def ask(self, after: float = 0.0) -> str | None:
        self.time += after
        return self.availability.lacks(self.tool, SETTINGS)


def test_a_tool_without_a_probe_lacks_nothing() -> None:
    assert Availability().lacks(_tool(None), SETTINGS) is None


def test_tools_that_are_called_otherwise_each_time_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(availability_module, "MOST_TOOLS", 10)
    made = Availability()
    for number in range(95):
        assert made.lacks(replace(_tool(lambda _: None), name=f"tool_{number}"), SETTINGS) is None
    kept = [cast("dict[str, object]", one) for one in vars(made).values() if isinstance(one, dict)]
    assert [len(one) for one in kept] == [5, 5, 5]


def test_an_answer_holds_for_half_a_minute() -> None:
    world = World(None, "no sandbox")
    assert [world.ask(), world.ask(KEPT_S - 1)] == [None, None]
    assert world.asked == 1
    assert world.ask(HICCUP_S) == "no sandbox"
    assert world.ask(KEPT_S - 1) == "no sandbox"
    assert world.asked == 2


def test_a_failure_within_a_minute_of_a_success_is_thrown_away_and_asked_again() -> None:
    world = World(None, "busy", None)
    assert [world.ask(), world.ask(KEPT_S + 1)] == [None, None]
    assert world.asked == 3


def test_a_second_failure_within_a_minute_is_told_and_not_kept() -> None:
    world = World(None, "gone", "gone", None)
    assert world.ask() is None
    assert world.ask(KEPT_S + 1) == "gone"
    assert world.ask() is None
    assert world.asked == 4


def test_a_failure_at_the_first_look_is_kept() -> None:
    world = World("no provider", None)
    assert [world.ask(), world.ask(1)] == ["no provider", "no provider"]
    assert world.ask(KEPT_S) is None


def test_a_probe_that_raises_is_a_lack_without_its_words() -> None:
    world = World(OSError("/home/somebody/key"))
    assert world.ask() == "its check failed (OSError)"


def test_of_many_that_ask_at_once_one_probes() -> None:
    begun, go = threading.Event(), threading.Event()
    asked: list[int] = []

    def probe(settings: Settings) -> str | None:
        del settings
        asked.append(1)
        begun.set()
        go.wait(10)
        return "no"

    availability, tool, answers = Availability(), _tool(probe), list[Any]()
    threads = [threading.Thread(target=lambda: answers.append(availability.lacks(tool, SETTINGS))) for _ in range(8)]
    for thread in threads:
        thread.start()
    assert begun.wait(10)
    go.set()
    for thread in threads:
        thread.join(10)
    assert answers == ["no"] * 8
    assert asked == [1]

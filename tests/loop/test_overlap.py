"""Calls of one batch that may overlap do, and whatever happens meanwhile each has one result, in emission order."""

from __future__ import annotations

import threading
from typing import Any
from uuid import UUID

import pytest

from shared.values import Repeat
from tests.ground import Ground, Rehearsal
from tests.loop.dying import Died, take_away
from workers import abreast
from workers.tools import registry
from workers.tools.context import Arguments, ToolContext, ToolResult
from workers.tools.tool import Tool, text
from workers.tools.touching import Thing, Touch

MEETS, ACTS = "meets", "acts"


def _tool(name: str, repeat: Repeat, run: Any) -> Tool:
    """It writes the thing that it is told the name of."""
    properties = {"thing": {"type": "string"}}
    schema: dict[str, object] = {"type": "object", "properties": properties, "additionalProperties": False}
    return Tool(
        name, "", schema, repeat, run, cap_chars=100,
        touches=lambda arguments: Touch(writes=(Thing(text(arguments, "thing", "")),)),
    )  # fmt: skip


def _acts(context: ToolContext, arguments: Arguments) -> ToolResult:
    del context, arguments
    return ToolResult("done now")


def _offer(monkeypatch: pytest.MonkeyPatch, tool: Tool) -> None:
    monkeypatch.setitem(vars(registry)["_ALL"], tool.name, tool)


def _call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "input": arguments}


def _run(worker: Ground, provider: Rehearsal, *calls: dict[str, Any]) -> tuple[UUID, UUID]:
    session = worker.session()
    provider.script([{"tools": list(calls)}, {"text": "so it is"}], session=str(session))
    return session, worker.turn(session, "go")


def _results(worker: Ground, turn: UUID) -> list[tuple[str, str]]:
    rows = worker.rows("select status, result from tool_runs where turn = %s order by step, ordinal", turn)
    return [(row["status"], row["result"]) for row in rows]


def test_eight_calls_that_touch_other_things_are_at_work_at_once(
    worker: Ground, provider: Rehearsal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each waits for all the others: one after the other, none would come to its end."""
    meeting = threading.Barrier(abreast.MOST)

    def meet(context: ToolContext, arguments: Arguments) -> ToolResult:
        meeting.wait(30)
        return ToolResult(f"{context.ordinal} {arguments['thing']}")

    _offer(monkeypatch, _tool(MEETS, Repeat.ONCE, meet))
    _, turn = _run(worker, provider, *(_call(MEETS, thing=str(at)) for at in range(8)))
    worker.look()
    assert _results(worker, turn) == [("done", f"{at + 1} {at}") for at in range(8)]
    sent = worker.rows("select content from messages where content like '%%tool_result%%' order by id")
    assert [f'"{at + 1} {at}"' in row["content"] for at, row in enumerate(sent)] == [True] * 8


def test_a_read_after_a_write_sees_it_and_one_before_it_does_not(worker: Ground, provider: Rehearsal) -> None:
    _, turn = _run(
        worker, provider,
        _call("write_file", path="a", content="old"), _call("read_file", path="a"), _call("read_file", path="b"),
        _call("write_file", path="a", content="new"), _call("read_file", path="a"), _call("list_files"),
    )  # fmt: skip
    worker.look()
    said = [result for _, result in _results(worker, turn)]
    assert said[:5] == ["written: a (3 bytes)", "old", "b does not exist", "replaced: a (3 bytes)", "new"]
    assert said[5].startswith("a\t3\t")


def test_of_two_acts_that_were_under_way_when_the_worker_died_both_are_told_as_unknown(
    worker: Ground, provider: Rehearsal, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = threading.Barrier(2)

    def dies(context: ToolContext, arguments: Arguments) -> ToolResult:
        del context, arguments
        both.wait(30)
        raise Died

    _offer(monkeypatch, _tool(ACTS, Repeat.ONCE, dies))
    session, turn = _run(
        worker,
        provider,
        _call(ACTS, thing="a"),
        _call(ACTS, thing="b"),
        _call(ACTS, thing="b"),
        _call("todo", items=[]),
    )
    with pytest.raises(Died):
        worker.look()
    _offer(monkeypatch, _tool(ACTS, Repeat.ONCE, _acts))
    take_away(worker, turn, session)
    worker.look()
    found = _results(worker, turn)
    assert [status for status, _ in found] == ["unknown", "unknown", "done", "done"]
    assert all("It may have happened" in result for _, result in found[:2])
    assert [result for _, result in found[2:]] == ["done now", "[0 open, 0 done]"]


def test_one_that_fails_costs_the_others_of_its_segment_nothing(
    worker: Ground, provider: Rehearsal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def some(context: ToolContext, arguments: Arguments) -> ToolResult:
        if arguments["thing"] == "b":
            raise ValueError("no word of this is told")
        return ToolResult(f"did {arguments['thing']}")

    _offer(monkeypatch, _tool(ACTS, Repeat.ONCE, some))
    _, turn = _run(worker, provider, *(_call(ACTS, thing=thing) for thing in "abc"))
    worker.look()
    fault = "the tool failed (ValueError); this is a fault of the tool"
    assert _results(worker, turn) == [("done", "did a"), ("failed", fault), ("done", "did c")]

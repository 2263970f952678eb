"""The tools of a session are those of its prompt: what workers carry besides comes with its next epoch, and a tool that
was called otherwise is still found."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import pytest

from shared.settings import Settings
from shared.values import Repeat, SessionKind
from tests.ground import Ground, Rehearsal
from tests.loop.dying import die, take_away
from tests.shrink.compacting import GOOD, claim, compact, go_on, long_session
from workers import snapshot
from workers.compaction import run
from workers.pause import Point
from workers.tools import registry
from workers.tools.context import Arguments, ToolContext, ToolResult
from workers.tools.tool import Tool

LATE = "late_tool"


def _run(context: ToolContext, arguments: Arguments) -> ToolResult:
    del context, arguments
    return ToolResult("it came late")


def _tool(lacking: list[str]) -> Tool:
    schema: dict[str, object] = {"type": "object", "properties": {}, "additionalProperties": False}

    def lacks(settings: Settings) -> str | None:
        del settings
        return lacking[0] if lacking else None

    return Tool(LATE, "Late.", schema, Repeat.REPEATABLE, _run, cap_chars=100, lacks=lacks)


def _offered(worker: Ground, session: UUID) -> list[str]:
    row = worker.one(
        "select p.tools_text from sessions s join prefixes p on p.digest = s.prefix where s.id = %s", session
    )
    return [tool["name"] for tool in json.loads(row["tools_text"])]


def _results(worker: Ground, turn: UUID) -> list[str]:
    rows = worker.rows("select result from tool_runs where turn = %s order by step, ordinal", turn)
    return [row["result"] for row in rows]


def _call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"tools": [{"name": name, "input": arguments}]}


def test_a_tool_that_comes_late_is_a_sessions_from_its_next_epoch_on(
    worker: Ground, provider: Rehearsal, monkeypatch: pytest.MonkeyPatch
) -> None:
    replies = [_call(LATE), {"text": "no"}, _call(LATE), {"text": "yes"}]
    session = long_session(worker, provider, [{"text": GOOD}], replies)
    monkeypatch.setitem(vars(registry)["_ALL"], LATE, _tool([]))
    turn = worker.turn(session, "is it there?")
    worker.look()
    assert LATE not in _offered(worker, session)
    assert _results(worker, turn)[0].startswith(f"there is no tool '{LATE}'")
    turn = worker.turn(session, "and now?")
    held = claim(worker)
    assert isinstance(compact(worker, held), run.Compacted)
    assert LATE in held.claim.tools
    assert LATE in _offered(worker, session)
    go_on(worker, held)
    assert _results(worker, turn) == ["it came late"]


def test_a_worker_that_carries_less_than_a_prompt_offers_says_so_and_others_still_have_it(
    worker: Ground, provider: Rehearsal, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = worker.session()
    provider.script([_call(LATE), {"text": "there"}, _call(LATE), {"text": "gone"}], session=str(session))
    with monkeypatch.context() as patch:
        patch.setitem(vars(registry)["_ALL"], LATE, _tool([]))
        first = worker.turn(session, "one")
        worker.look()
    second = worker.turn(session, "two")
    worker.look()
    assert _results(worker, first) == ["it came late"]
    assert _results(worker, second)[0].startswith(f"there is no tool '{LATE}'")
    assert LATE in _offered(worker, session)


def test_what_the_host_lacks_is_not_offered_and_a_child_is_not_asked_again(
    worker: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(vars(registry)["_ALL"], LATE, _tool(["no such machine"]))
    settings = worker.settings
    assert LATE not in snapshot.chosen(settings, SessionKind.CHAT, None)
    assert LATE not in snapshot.chosen(settings, SessionKind.JOB, (LATE, "todo"))
    assert LATE in snapshot.chosen(settings, SessionKind.CHILD, (LATE, "todo"))
    assert snapshot.lacking(settings)[LATE] == "no such machine"


def test_a_prompt_of_old_names_offers_the_tools_that_they_are_now() -> None:
    old = '[{"name":"ask_person"},{"name":"skill_view"},{"name":"todo"},{"name":"never_was"}]'
    assert snapshot.named(old) == ("clarify", "never_was", "skills", "todo")
    assert all(name in registry.TOOLS and former not in registry.TOOLS for former, name in registry.FORMER.items())


def test_a_run_under_an_old_name_that_was_open_when_its_tool_got_another_is_run(
    worker: Ground, provider: Rehearsal
) -> None:
    session = worker.session()
    provider.script([_call("todo", items=[]), {"text": "so it is"}], session=str(session))
    turn = worker.turn(session, "one")
    assert die(worker, Point.BEFORE_TOOL)
    worker.execute("alter table tool_runs disable trigger user")
    worker.execute("update tool_runs set tool = 'skill_view', arguments = '{}' where turn = %s", turn)
    worker.execute("alter table tool_runs enable trigger user")
    take_away(worker, turn, session)
    worker.look()
    assert _results(worker, turn) == ["[there are no skills]"]

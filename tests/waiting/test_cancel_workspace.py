"""A workspace that is deleted under a running child: the child's tools say so, and the parent goes on."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Generator
from pathlib import Path

import pytest

from shared.values import TurnClass
from tests.ground import Ground, Rehearsal, ground
from tests.waiting.acts import children, delegate, result, tool
from workers.pause import Pauses, Point


@pytest.fixture
def free(database_url: str, redis_url: str, provider: Rehearsal, tmp_path: Path) -> Generator[Ground]:
    """A worker whose tools need nobody's leave."""
    provider.reset()
    with ground(database_url, redis_url, provider.url, tmp_path, max_output_tokens=30_000) as made:
        yield made


@pytest.mark.parametrize("whose", ["child", "parent"])
def test_a_workspace_deleted_under_a_running_child(free: Ground, provider: Rehearsal, whose: str) -> None:
    session = free.session()
    provider.script([{"text": "so", "tools": [delegate("leaf")]}, {"text": "all in"}], session=str(session))
    tools = [
        tool("list_files"), tool("read_file", path="a.txt"), tool("search_files", pattern="x"),
        tool("write_file", path="b.txt", content="beta"), tool("git_log"),
    ]  # fmt: skip
    provider.script([{"text": "so", "tools": tools}, {"text": "I could not"}], match={"contains": "leaf"})
    turn = free.turn(session, "go")
    free.look_once(TurnClass.INTERACTIVE)
    (child,) = children(free, turn)
    parents = free.home / "ws" / str(session)
    own = Path(free.one("select workspace from sessions where id = %s", child["session"])["workspace"])

    class Delete(Pauses):
        def at(self, point: Point) -> None:
            if point is Point.BEFORE_CALL and own.exists():
                shutil.rmtree(own if whose == "child" else parents)

    before = free.ports
    free.ports = dataclasses.replace(before, pauses=Delete(""))
    assert free.look_once(TurnClass.CHILD) == 1
    free.ports = before
    runs = free.rows("select tool, status, result from tool_runs where turn = %s order by ordinal", child["id"])
    assert [run["status"] for run in runs] == ["failed"] * 5
    assert all("workspace" in run["result"] for run in runs)
    assert all(str(free.home) not in run["result"] for run in runs)
    assert free.view(child["id"])["answer"] == "I could not"
    free.look()
    assert (free.view(turn)["status"], free.view(turn)["answer"]) == ("done", "all in")
    assert "I could not" in result(free, turn)

"""One slot is enough for a tree: a parent holds nothing while its children work, at any depth and width."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator
from pathlib import Path
from uuid import UUID

import pytest

from shared.store import principals, waits
from shared.store.pool import Connection
from shared.values import PrincipalKind, Role
from tests.ground import Ground, Rehearsal, ground, until

WIDTH = 3
DEPTH = 3
SIZE = sum(WIDTH**level for level in range(1, DEPTH + 1))


@pytest.fixture
def grower(database_url: str, redis_url: str, provider: Rehearsal, tmp_path: Path) -> Generator[Ground]:
    provider.reset()
    with ground(database_url, redis_url, provider.url, tmp_path, spawn_depth=DEPTH) as made:
        yield made


def test_a_single_slot_finishes_a_tree(grower: Ground, provider: Rehearsal) -> None:
    """The tree of the issue is three levels of ten; `./dev bench tree` grows that one."""
    provider.post("script", {"policy": "tree", "width": WIDTH, "text": "found"})
    turn = grower.turn(grower.session(), "grow")
    grower.look(1)
    rows = grower.rows(
        "with recursive tree(id, depth) as (select %s::uuid, 0"
        "   union all select c.id, tree.depth + 1 from turns c join tree on c.parent = tree.id)"
        " select tree.depth, t.status, t.children_open, t.spent_usd + t.children_usd as usd, s.depth as told"
        " from tree join turns t on t.id = tree.id join sessions s on s.id = t.session",
        turn,
    )
    assert [sum(row["depth"] == level for row in rows) for level in range(DEPTH + 1)] == [1, 3, 9, 27]
    assert {(row["status"], row["children_open"]) for row in rows} == {("done", 0)}
    assert all(row["depth"] == row["told"] for row in rows)
    root = next(row for row in rows if row["depth"] == 0)
    spent = grower.one("select sum(cost_usd) as usd from calls")["usd"]
    assert root["usd"] == spent
    assert all(call["extended"] is not False for call in provider.ledger())
    assert all(call["overlap"] is False for call in provider.ledger())


def test_below_the_last_level_nobody_is_offered_to_delegate(grower: Ground, provider: Rehearsal) -> None:
    provider.post("script", {"policy": "tree", "width": 1, "text": "found"})
    turn = grower.turn(grower.session(), "grow")
    grower.look(1)
    tools = grower.rows("select depth, tools from sessions where kind = 'child' order by depth")
    assert ["delegate_task" in row["tools"] for row in tools] == [True, True, False]
    assert all("clarify" not in row["tools"] for row in tools)
    assert grower.view(turn)["status"] == "done"


def test_a_parent_and_ten_children_on_one_slot_while_a_question_is_answered(
    grower: Ground, provider: Rehearsal
) -> None:
    """The question comes while the children wait for the slot, and does not wait for them."""
    session = grower.session()
    tasks = {"tasks": [{"goal": f"part {number}", "tools": ["read_file"]} for number in range(10)]}
    provider.script([{"tools": [{"name": "delegate_task", "input": tasks}]}, {"text": "all in"}], session=str(session))
    provider.script([{"text": "found", "delay_s": 0.25}])
    turn = grower.turn(session, "find out")
    slot = threading.Thread(target=grower.look, args=(1,))
    slot.start()
    until(lambda: grower.view(turn)["status"] == "parked", 10, "the parent asleep")
    time.sleep(0.3)
    asking = grower.session()
    provider.script([{"text": "soon"}], session=str(asking))
    question = grower.turn(asking, "when?")
    slot.join(30)
    row = grower.view(turn)
    assert (row["status"], row["answer"], row["children_open"]) == ("done", "all in", 0)
    asked = grower.view(question)
    assert asked["answer"] == "soon"
    left = grower.one(
        "select count(*) as n from turns where parent = %s and started_at > %s", turn, asked["finished_at"]
    )
    assert left["n"] >= 5
    assert grower.one("select count(*) as n from turns where parent = %s and status = 'done'", turn)["n"] == 10


def test_with_a_depth_of_nought_nobody_delegates(
    database_url: str, redis_url: str, provider: Rehearsal, tmp_path: Path
) -> None:
    provider.reset()
    with ground(database_url, redis_url, provider.url, tmp_path, spawn_depth=0) as alone:
        provider.post("script", {"policy": "tree", "width": 2, "text": "alone"})
        turn = alone.turn(alone.session(), "grow")
        alone.look(1)
        assert alone.view(turn)["answer"] == "alone"
        assert alone.rows("select 1 from turns where parent is not null") == []


def _decide(worker: Ground, approval: UUID, *, approve: bool) -> None:
    boss = worker.database.read(lambda c: principals.ensure_principal(c, "boss", PrincipalKind.PERSON, Role.APPROVER))

    def work(connection: Connection) -> None:
        with connection.transaction():
            waits.decide(connection, approval, boss, Role.APPROVER, approve=approve, note=None)

    worker.database.read(work)


def test_children_that_each_need_a_persons_leave_wait_each_for_its_own(worker: Ground, provider: Rehearsal) -> None:
    """The parent sleeps for its children, each child for its own request; decided one by one, all end."""
    session = worker.session()
    tasks = {"tasks": [{"goal": f"write {number}"} for number in range(3)]}
    provider.script([{"tools": [{"name": "delegate_task", "input": tasks}]}, {"text": "all in"}], session=str(session))
    wish = {"name": "write_file", "input": {"path": "found.md", "content": "x"}}
    provider.script([{"tools": [wish]}, {"text": "written"}])
    turn = worker.turn(session, "find out")
    worker.look(1)
    children = worker.rows("select id, status, parked_on from turns where parent = %s order by child_index", turn)
    assert [(row["status"], row["parked_on"]) for row in children] == [("parked", "approval")] * 3
    assert worker.view(turn)["parked_on"] == "children"
    for at, child in enumerate(children):
        approval = worker.one("select id from approvals where turn = %s and status = 'pending'", child["id"])["id"]
        _decide(worker, approval, approve=at != 1)
        worker.look(1)
    assert worker.view(turn)["status"] == "done"
    result = worker.one("select result from tool_runs where turn = %s", turn)["result"]
    assert result.count("/found.md (1 bytes)") == 2
    assert worker.one("select count(*) as n from approvals where status = 'denied'")["n"] == 1

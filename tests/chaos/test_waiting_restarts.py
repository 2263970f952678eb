"""Everything is restarted while turns wait: for people, for children, with children in the background."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Generator, Sequence

import pytest

from tests.chaos.rig import TERMINAL, Rig, slack, stack, until
from tests.waiting import crowd

APPROVALS, PARENTS, BACKGROUND = 50, 20, 20
ROLES = ("worker", "scheduler", "beat", "api", "valkey", "postgres")


@pytest.fixture(scope="module")
def rig() -> Generator[Rig]:
    with stack(workers=1, concurrency=8, settings={"approve_tools": "write_file"}) as made:
        yield made


def _restart_everything(rig: Rig) -> None:
    """All of it is down at one time; Postgres is told to stop at once, everyone else is killed."""
    with contextlib.ExitStack() as down:
        for role in ROLES:
            down.enter_context(rig.held_down(role, signal.SIGQUIT if role == "postgres" else signal.SIGKILL))

    def serves() -> bool:
        with contextlib.suppress(Exception):
            return rig.http.get("/readyz").status_code == 200
        return False

    until(serves, 60 * slack(), "the stack serving again")


def test_everything_is_restarted_and_each_decided_or_finished_item_resumes_once(rig: Rig) -> None:
    crowd.children_answer(rig, after_s=60)
    asking = crowd.writing(rig, APPROVALS)
    asking.await_parked("approval", 60)
    told = crowd.delegating(rig, BACKGROUND, background=True)
    rig.all_ended(told.turns, 60 * slack())
    parents = crowd.delegating(rig, PARENTS)
    parents.await_parked("children", 60)
    before = _children(rig, [*told.turns, *parents.turns])
    assert len(before) == BACKGROUND + PARENTS
    assert not any(row["status"] in TERMINAL for row in before)
    decided = [row["id"] for row in crowd.pending(rig)]
    crowd.approve(rig, decided[: APPROVALS // 2])  # some are on their way when everything goes down
    crowd.children_answer(rig)

    _restart_everything(rig)

    assert asking.parked("approval") <= APPROVALS // 2
    waiting = [row["id"] for row in crowd.pending(rig)]
    assert waiting == decided[APPROVALS // 2 :]
    crowd.approve(rig, waiting)
    rows = rig.all_ended([*asking.turns, *parents.turns], 120 * slack())
    assert {row["status"] for row in rows} == {"done"}
    children = _children(rig, [*told.turns, *parents.turns])
    until(lambda: all(row["status"] == "done" for row in _children(rig, [*told.turns])), 60 * slack(), "the background")
    assert {row["id"] for row in children} == {row["id"] for row in before}
    _once(rig, asking.turns, tool="write_file")
    _once(rig, parents.turns, tool="delegate_task")
    for turn in parents.turns:
        run = rig.one("select status, result from tool_runs where turn = %s", turn)
        assert (run["status"], run["result"].count("the finding")) == ("done", 1)
    _told_once(rig, told.sessions)
    assert rig.rows("select id from turns where status = 'parked'") == []


def _children(rig: Rig, parents: Sequence[str]) -> list[dict[str, object]]:
    return rig.rows("select id, status from turns where parent = any(%s::uuid[])", list(parents))


def _once(rig: Rig, turns: Sequence[str], *, tool: str) -> None:
    """One run of the tool a turn, done, with one result in the transcript, and one answer behind it."""
    # One that had `started` when its worker was killed is told as unknown: whether it happened, nobody can say.
    runs = rig.rows(
        "select turn, count(*) as n, bool_and(status = 'done' or (repeat = 'once' and status = 'unknown'"
        "   and started_at is not null)) as done from tool_runs"
        " where turn = any(%s::uuid[]) and tool = %s group by turn",
        list(turns), tool,
    )  # fmt: skip
    assert [(row["n"], row["done"]) for row in runs] == [(1, True)] * len(turns)
    said = rig.rows(
        "select turn, array_agg(role || ordinal order by id) as roles from messages where turn = any(%s::uuid[])"
        " group by turn",
        list(turns),
    )
    assert {tuple(row["roles"]) for row in said} == {("user0", "assistant0", "user1", "assistant0")}


def _told_once(rig: Rig, sessions: Sequence[str]) -> None:
    """Each background child's result came to its parent's session once, and was folded."""

    def all_folded() -> bool:
        rows = rig.rows(
            "select session, count(*) as n, count(folded_into) as folded from inbox"
            " where session = any(%s::uuid[]) and kind = 'child' group by session",
            list(sessions),
        )
        return [(row["n"], row["folded"]) for row in rows] == [(1, 1)] * len(sessions)

    until(all_folded, 60 * slack(), "each background result folded once")
    turns = rig.rows(
        "select session, count(*) as n from turns where session = any(%s::uuid[]) group by session", list(sessions)
    )
    assert [row["n"] for row in turns] == [2] * len(sessions)

"""A worker that dies at any point of a step: the next one goes on from the rows, and the prefix holds."""

from __future__ import annotations

from typing import Any

import pytest

from shared.values import Repeat, RunStatus
from tests.ground import Ground, Rehearsal
from tests.loop.dying import die, take_away
from workers import resuming
from workers.pause import Point

TWELVE = [{"name": "write_file", "input": {"path": "ключ.txt", "content": "1e2 ünï \u202e"}}] + [
    {"name": "read_file", "input": {"path": "ключ.txt", "limit": n + 1}} for n in range(11)
]
REPLIES: list[dict[str, Any]] = [
    {"text": "twelve at once", "tools": TWELVE},
    {"text": "and one", "tools": [{"name": "todo", "input": {"items": [{"text": "x", "done": True}]}}]},
    {"text": "the end"},
]

# The point, the how manieth time it is reached, and which reply the provider has given in vain by then.
POINTS = [
    (Point.RESERVED, 1, None), (Point.BEFORE_CALL, 2, None), (Point.IN_STREAM, 1, 0), (Point.AFTER_CALL, 1, 0),
    (Point.RECORDING, 1, 0), (Point.RECORDED, 1, None), (Point.BEFORE_TOOL, 1, None), (Point.BEFORE_TOOL, 5, None),
    (Point.AFTER_TOOL, 1, None), (Point.AFTER_TOOL, 7, None), (Point.AFTER_TOOL, 13, None), (Point.RECORDING, 3, 2),
    (Point.FINISHING, 1, 2),
]  # fmt: skip


@pytest.mark.parametrize(("point", "times", "wasted"), POINTS)
def test_a_turn_whose_worker_died_ends_as_if_it_had_not(
    worker: Ground, provider: Rehearsal, point: Point, times: int, wasted: int | None
) -> None:
    session = worker.session()
    replies = [*REPLIES] if wasted is None else [*REPLIES[: wasted + 1], *REPLIES[wasted:]]
    provider.script(replies, session=str(session))
    turn = worker.turn(session, "go")
    assert die(worker, point, times), f"{point} was not reached"
    take_away(worker, turn, session)
    worker.look()

    row = worker.view(turn)
    assert (row["status"], row["answer"], row["step"], row["takeovers"]) == ("done", "the end", 3, 1)
    assert row["steps"] - row["refunds"] == 3
    assert row["reserved_usd"] == 0
    keys = [tuple(r.values()) for r in worker.rows(
        "select step, ordinal from messages where turn = %s order by id", turn)]  # fmt: skip
    assert keys == [(0, 0), *((1, n) for n in range(13)), (2, 0), (2, 1), (3, 0)]
    assert all(call["extended"] is not False for call in provider.ledger(session))
    lost = worker.rows("select status, cost_assumed from calls where turn = %s and status = 'lost'", turn)
    assert len(lost) <= 1
    assert all(r["cost_assumed"] for r in lost)


def test_a_run_that_may_happen_once_and_was_started_is_unknown_not_repeated(
    worker: Ground, provider: Rehearsal
) -> None:
    session = worker.session()
    write = {"name": "write_file", "input": {"path": "once.txt", "content": "x"}}
    provider.script([{"tools": [write]}, {"text": "I see"}], session=str(session))
    turn = worker.turn(session, "write")
    assert die(worker, Point.AFTER_TOOL)
    (worker.home / "ws" / str(session) / "once.txt").unlink()
    take_away(worker, turn, session)
    worker.look()

    run = worker.one("select * from tool_runs where turn = %s", turn)
    assert run["status"] == RunStatus.UNKNOWN
    assert "outcome unknown" in run["result"]
    assert not (worker.home / "ws" / str(session) / "once.txt").exists()
    assert worker.view(turn)["status"] == "done"
    told = [e.data for e in worker.events(turn) if e.kind.value == "tool.finished" and e.data["status"] == "unknown"]
    assert [(data["tool"], data["is_error"]) for data in told] == [("write_file", True)]


# What the provider sends and the words of its answer: each would write a file if only what Postgres holds were read.
UNFIT = [
    ({"name": "write file", "input": {"path": "made.txt", "content": "x"}}, "not one a tool can have"),
    ({"name": "write_file", "input_text": '{"path":"made.txt","content":"a\x00b"}'}, "not valid JSON"),
    ({"name": "write_file", "input_text": '{"path":"made.txt","content":"x"'}, "cut off"),
]


@pytest.mark.parametrize(("call", "words"), UNFIT)
@pytest.mark.parametrize("first", [True, False])
def test_a_call_that_could_not_be_read_does_not_run_after_a_crash_either(
    worker: Ground, provider: Rehearsal, call: dict[str, Any], words: str, first: bool
) -> None:
    fine = {"name": "write_file", "input": {"path": "fine.txt", "content": "x"}}
    session = worker.session()
    provider.script([{"tools": [call, fine] if first else [fine, call]}, {"text": "I see"}], session=str(session))
    turn = worker.turn(session, "write")
    assert die(worker, Point.RECORDED)
    take_away(worker, turn, session)
    worker.look()

    run = worker.one("select * from tool_runs where turn = %s and ordinal = %s", turn, 1 if first else 2)
    assert (run["status"], run["is_error"]) == (RunStatus.FAILED, True)
    assert "could not be read" in run["result"]
    assert words in run["result"]
    assert not (worker.home / "ws" / str(session) / "made.txt").exists()
    assert worker.view(turn)["status"] == "done"


@pytest.mark.parametrize("repeat", list(Repeat))
@pytest.mark.parametrize("status", list(RunStatus))
def test_what_the_next_holder_does_with_a_run(status: RunStatus, repeat: Repeat) -> None:
    expected = {
        RunStatus.ASKED: "run",
        RunStatus.APPROVED: "run",
        RunStatus.STARTED: {
            Repeat.REPEATABLE: "run", Repeat.KEYED: "run", Repeat.CHECKABLE: "check", Repeat.ONCE: "unknown",
        }[repeat],
    }.get(status, "known")  # fmt: skip
    assert resuming.next_for(status, repeat) == expected
    assert resuming.next_for(status, repeat, unfit=True) == ("known" if expected == "known" else "run")


def test_a_turn_that_is_taken_away_for_good_leaves_no_run_open_and_a_session_that_works(
    worker: Ground, provider: Rehearsal
) -> None:
    session = worker.session()
    provider.script([{"tools": TWELVE}, {"text": "next"}], session=str(session))
    turn = worker.turn(session, "go")
    assert die(worker, Point.BEFORE_TOOL)
    take_away(worker, turn, session, "failed")
    found = worker.rows("select distinct status from tool_runs where turn = %s order by 1", turn)
    assert [r["status"] for r in found] == ["cancelled", "unknown"]
    following = worker.turn(session, "and now?")
    worker.look()
    assert worker.view(following)["answer"] == "next"
    assert any(e.kind.value == "transcript.repaired" for e in worker.events(following))
    provider.script([{"text": "and again"}], session=str(session))
    third = worker.turn(session, "and then?")  # what it extends is what was sent, which had been mended
    worker.look()
    assert worker.view(third)["answer"] == "and again"
    assert all(call["extended"] is not False for call in provider.ledger(session))

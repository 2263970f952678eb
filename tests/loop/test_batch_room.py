"""One eager reply must not fill a session for ever."""

from __future__ import annotations

from tests.ground import Ground, Rehearsal
from workers import batch_room
from workers.batch_room import MOST_RUNS


def test_hundreds_of_large_reads_in_one_reply_leave_a_session_that_works(worker: Ground, provider: Rehearsal) -> None:
    session = worker.session()
    folder = worker.home / "ws" / str(session)
    folder.mkdir(parents=True)
    (folder / "big.txt").write_text("0123456789 abcdefghij\n" * 2600)
    reads = [{"name": "read_file", "input": {"path": "big.txt"}} for _ in range(300)]
    provider.script([{"text": "all of it", "tools": reads}, {"text": "done"}, {"text": "and on"}], session=str(session))
    turn = worker.turn(session, "read it again and again")
    worker.look()
    assert worker.view(turn)["answer"] == "done"
    counts = worker.rows("select status, count(*) as n from tool_runs where turn = %s group by 1 order by 1", turn)
    found = {row["status"]: row["n"] for row in counts}
    assert sum(found.values()) > MOST_RUNS  # as many as fit the reply's own bound
    assert 0 < found["done"] <= MOST_RUNS
    following = worker.turn(session, "go on")
    worker.look()
    assert worker.view(following)["answer"] == "and on"


def test_a_result_larger_than_the_room_is_cut_and_says_so() -> None:
    room = batch_room.room("claude-sonnet-5-5", 10_000, 0)
    assert room.refusal() is None
    cut = room.take("word " * 100_000)
    assert "left out" in cut
    assert len(cut) < 60_000
    assert room.refusal() == batch_room.NO_ROOM


def test_small_results_pass_whole() -> None:
    room = batch_room.room("claude-sonnet-5-5", 1_000_000, 5_000)
    assert room.take("fine") == "fine"

"""One eager reply must not fill a session for ever."""

from __future__ import annotations

from tests.ground import Ground, Rehearsal
from workers import batch_room
from workers.batch_room import MOST_RUNS
from workers.tools import read_artifact
from workers.tools.context import ToolResult

MODEL = "claude-sonnet-5-5"


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


def test_a_full_room_runs_nothing_more() -> None:
    room = batch_room.room(MODEL, 4_000, 0)
    assert room.refusal() is None
    for _ in range(6):
        room.count("word " * 100_000)  # a preview of it is what it needs at least
    assert room.refusal() == batch_room.NO_ROOM


def test_a_page_is_shortened_to_the_room_and_says_where_it_ends() -> None:
    room = batch_room.room(MODEL, 10_000, 0)
    note = "characters 40000-60000 of 90000; read on with offset=60000"
    page = room.page(ToolResult("word " * 4_000 + f"\n[{note}]", note=note), read_artifact.shortened)
    text, _, last = page.text.rpartition("\n")
    assert 200 < len(text) < 20_000
    assert last == f"[characters 40000-{40_000 + len(text)} of 90000; read on with offset={40_000 + len(text)}]"
    assert room.taken <= room.tokens


def test_a_whole_text_that_ends_like_a_page_is_not_taken_for_one() -> None:
    fake = "word " * 4_000 + "\n[characters 5-9 of 10; read on with offset=9]"
    page = batch_room.room(MODEL, 10_000, 0).page(ToolResult(fake), read_artifact.shortened)
    assert page.note is not None
    assert page.note.startswith("characters 0-")
    assert f" of {len(fake)};" in page.note


def test_a_page_that_fits_passes_as_it_is() -> None:
    result = ToolResult("fine")
    assert batch_room.room(MODEL, 1_000_000, 5_000).page(result, read_artifact.shortened) is result

"""What is read of a session that has summaries: the rows that stand, found by their own index, and no others."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from shared.request import projection
from shared.request.projection import EditRow
from shared.store import transcript
from tests.request.made import PREFIX, STEADY, answer, user
from tests.store.conftest import Rows

EDIT = st.tuples(st.sampled_from(["summary", "rewind"]), st.integers(1, 30), st.integers(0, 20), st.integers(0, 3))


@STEADY
@given(st.lists(EDIT, max_size=6))
def test_the_rows_that_stand_project_to_what_all_rows_project_to(drawn: list[tuple[str, int, int, int]]) -> None:
    rows = [user(n, f"asked {n}") if n % 2 else answer(n, f"said {n}") for n in range(1, 31)]
    edits = [
        EditRow(31 + at, kind, first, first + more, text=f"S{at}", kept=range(first, first + kept))
        for at, (kind, first, more, kept) in enumerate(drawn)
    ]
    ranges = projection.edit_rules.apply(edits).live(transcript.NEWEST)
    standing = [row for row in rows if any(first <= row.id <= last for first, last in ranges)]
    whole, read = projection.project(PREFIX, rows, edits), projection.project(PREFIX, standing, edits)
    assert read.pieces == whole.pieces
    assert read.chain == whole.chain


def test_a_range_is_read_by_the_index_of_its_session_though_others_wrote_meanwhile(rows: Rows) -> None:
    """The key alone finds the same rows, through everything that was written between."""
    mine, other = rows.session(), rows.session()
    for session, count in ((other, 3_000), (mine, 6_000), (other, 3_000)):
        turn = rows.turn(session)
        rows.connection.execute(
            "insert into messages (session, turn, step, ordinal, author, role, content, fence) select %s, %s, n, 0,"
            " 'm', 'user', '[]', 0 from generate_series(1, %s) n",
            (session, turn, count),
        )
    rows.connection.execute("analyze messages")
    (first, last) = rows.connection.execute(
        "select min(id) + 1, max(id) - 40 from messages where session = %s", (mine,)
    ).fetchall()[0]
    bounds = {"first": [0, last + 1], "last": [first - 1, transcript.NEWEST], "session": mine}
    plan = rows.connection.execute(f"explain (analyze, costs off) {transcript.STANDING}".encode(), bounds).fetchall()
    shown = "\n".join(row[0] for row in plan)
    assert "messages_of_session" in shown
    assert "Removed" not in shown, shown
    assert len(rows.connection.execute(transcript.STANDING.encode(), bounds).fetchall()) == 41

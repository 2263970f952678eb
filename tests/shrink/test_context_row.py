"""The columns that reductions are decided by, from the claim to T1 and back."""

from __future__ import annotations

from datetime import timedelta

from tests.ground import Ground, Rehearsal
from tests.shrink.conftest import Bodies, advance, assert_replayed


def test_when_a_session_was_called_and_how_long_it_is_warm_stand_on_its_row(
    worker: Ground, provider: Rehearsal, bodies: Bodies
) -> None:
    """By the database's clock, from when the call went out: that is when the provider read what it keeps. After a gap
    of an hour, asking for an hour costs less than writing all of it again."""
    session = worker.session()
    provider.script([{"text": "one"}, {"text": "two"}], session=str(session))
    query = """select s.called_at, s.prefix_warm_until, c.created_at from sessions s
        join calls c on c.session = s.id where s.id = %s order by c.seq desc limit 1"""
    seen: list[timedelta] = []
    for text in ("first", "second"):
        worker.turn(session, text)
        worker.look()
        row = worker.one(query, session)
        assert row["called_at"] == row["created_at"]
        seen.append(row["prefix_warm_until"] - row["called_at"])
        advance(worker, 3600)
    assert seen == [timedelta(minutes=5), timedelta(hours=1)]
    assert_replayed(worker, session, bodies(session))

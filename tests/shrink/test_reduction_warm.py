"""A conversation that a person wants kept warm is read just before the provider forgets it, while that is cheaper."""

from __future__ import annotations

import pytest

from scheduler.room import Room
from scheduler.warmth import keep
from shared import stream
from shared.request.marked import Ttl
from tests.ground import Ground, Rehearsal
from tests.shrink.conftest import Bodies, advance, assert_replayed
from workers.reduction import meters
from workers.reduction.state import Context


def _room(worker: Ground) -> Room:
    return Room(worker.settings, worker.database, worker.ports.doorbell, stream.connect(worker.settings.redis_url))


def _move(worker: Ground, provider: Rehearsal, seconds: float) -> None:
    advance(worker, seconds)
    provider.post("clock", {"offset_s": float(worker.one("select offset_s from test_clock")["offset_s"])})


def test_a_session_that_is_kept_warm_is_read_until_a_write_would_have_cost_less(
    worker: Ground, provider: Rehearsal, bodies: Bodies
) -> None:
    room = _room(worker)
    session = worker.session(model="claude-opus-5")
    provider.script([{"text": "hello"}, {"text": "again"}], session=str(session))
    worker.turn(session, "a first word " * 300)
    worker.look()
    most = worker.one("select most_pings from sessions where id = %s", session)["most_pings"]
    assert most == 9  # 0.8 of (1.25 - 0.1) is 9.2 reads
    _move(worker, provider, 292)
    assert keep(room) == 0, "nobody asked for it"
    worker.execute("update sessions set keep_warm = true where id = %s", session)

    pings = 0
    while keep(room):
        assert keep(room) == 0, "one turn is enough"
        assert worker.look() == 1
        assert keep(room) == 0, "it was read, so it is kept"
        pings += 1
        _move(worker, provider, 292)
    assert pings == most
    calls = worker.rows(
        "select c.purpose, c.max_tokens, c.status, c.output_tokens, t.class from calls c join turns t on t.id = c.turn"
        " where c.session = %s order by c.seq", session,
    )[1:]  # fmt: skip
    assert {tuple(call.values()) for call in calls} == {("ping", 1, "settled", 1, "chore")}
    assert all(call["cache_read"] > 0 for call in provider.ledger(session)[1:])
    assert worker.rows("select distinct author from messages where session = %s and role = 'assistant'", session) == [
        {"author": "model"}
    ]
    row = worker.one("select warm_pings, called_at, prefix_warm_until from sessions where id = %s", session)
    assert row["warm_pings"] == most
    assert (row["prefix_warm_until"] - row["called_at"]).total_seconds() > 290 * most

    worker.turn(session, "a second word")
    worker.look()
    last = provider.ledger(session)[-1]
    assert (last["status"], last["cache_read"] > 0) == (200, True)
    assert worker.one("select warm_pings from sessions where id = %s", session)["warm_pings"] == 0
    assert_replayed(worker, session, bodies(session))


def test_a_ping_that_fails_is_not_sent_again_before_the_entry_is_gone(worker: Ground, provider: Rehearsal) -> None:
    room = _room(worker)
    session = worker.session()
    provider.script([{"text": "hello"}, {"fault": {"kind": "status", "status": 529}}], session=str(session))
    worker.turn(session, "a first word")
    worker.look()
    worker.execute("update sessions set keep_warm = true where id = %s", session)
    _move(worker, provider, 292)
    assert keep(room) == 1
    worker.look()
    statuses = worker.rows("select purpose, status from calls where session = %s order by seq", session)
    assert [tuple(row.values()) for row in statuses] == [("main", "settled"), ("ping", "failed")]
    assert keep(room) == 0
    assert worker.one("select reserved_usd from sessions where id = %s", session)["reserved_usd"] == 0


def test_how_many_reads_a_write_is_worth() -> None:
    assert [meters.most_pings(meters.ASSUMED, ttl) for ttl in Ttl] == [9, 15]


@pytest.mark.parametrize(
    ("ttl", "hold_5m", "expected"),
    [
        pytest.param(Ttl.MINUTES, 0.0, 9, id="short gaps, five minutes"),
        pytest.param(Ttl.MINUTES, 0.5, 0, id="long gaps: an hour is cheaper than twelve reads"),
        pytest.param(Ttl.HOUR, 0.5, 15, id="long gaps, an hour"),
        pytest.param(Ttl.HOUR, 0.0, 0, id="short gaps: the next call asks for five minutes"),
    ],
)
def test_only_the_time_to_live_that_costs_less_is_worth_a_ping(ttl: Ttl, hold_5m: float, expected: int) -> None:
    assert meters.worth_pinging(Context(ttl, hold_5m=hold_5m), meters.ASSUMED, 50_000) == expected


def test_a_conversation_that_is_with_another_model_is_not_read_at_its_own(worker: Ground, provider: Rehearsal) -> None:
    """While its own is out, or once a person has named another: there none of it is kept, and a read would be a
    write of all of it."""
    room = _room(worker)
    session = worker.session()
    provider.script([{"text": "hello"}], session=str(session))
    worker.turn(session, "a first word")
    worker.look()
    was = worker.one("update sessions set keep_warm = true where id = %s returning spoke, model", session)
    assert was["spoke"] == f"anthropic:{was['model']}"
    _move(worker, provider, 292)
    worker.execute("update sessions set model = 'claude-opus-4-6' where id = %s", session)
    assert keep(room) == 0
    worker.execute("update sessions set model = %s where id = %s", was["model"], session)
    assert keep(room) == 1
    worker.execute("update sessions set model = 'claude-opus-4-6' where id = %s", session)
    assert worker.look() == 1
    assert [row["purpose"] for row in worker.rows("select purpose from calls where session = %s", session)] == ["main"]

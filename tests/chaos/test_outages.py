"""Postgres killed and restarted, Valkey frozen, connections ended, while turns run on two workers.

The drill does the rest: Valkey flushed, killed, restarted; Postgres restarted in order.
"""

from __future__ import annotations

import signal
import time

import psycopg
import pytest

from tests.chaos import load
from tests.chaos.rig import Rig, slack
from tests.ground import until


def _lock_holders(rig: Rig) -> list[int]:
    """Backends that hold a living worker's advisory lock."""
    rows = rig.rows(
        "select l.pid from pg_locks l join workers w on ((l.classid::bigint << 32) | l.objid::bigint) = w.lock_key"
        " where l.locktype = 'advisory' and l.granted and w.kind = 'worker' and w.stopped_at is null"
    )
    return [row["pid"] for row in rows]


def pair_ended(rig: Rig) -> int:
    return sum(call["ended"] is not None for call in rig.provider.ledger())


@pytest.mark.parametrize("number", [signal.SIGQUIT, signal.SIGKILL], ids=lambda n: n.name)
def test_postgres_may_be_restarted_at_once_under_twenty_turns(pair: Rig, number: signal.Signals) -> None:
    pair.workers_ready(2)
    running = load.running(pair)
    running.release()
    pair.wait(ended=pair_ended(pair) + 5)

    pair.kill(pair.pid("postgres"), number)

    running.account(f"Postgres {number.name}, restarted at once, during 20 running turns")


def test_losing_only_the_connection_of_the_lock_costs_no_takeover(pair: Rig) -> None:
    pair.workers_ready(2)
    running = load.running(pair, 4)
    before = set(_lock_holders(pair))
    assert len(before) == 2

    for backend in before:
        assert pair.one("select pg_terminate_backend(%s) as gone", backend)["gone"]

    until(lambda: len(set(_lock_holders(pair)) - before) == 2, 10, "both locks held again")
    time.sleep(2.5)  # longer than the sweep needs to declare a process dead
    running.release()
    running.account("the lock's connection ended on both workers, calls in flight")


def test_a_frozen_broker_costs_only_its_own_outage(pair: Rig) -> None:
    pair.workers_ready(2)
    orphan, due, running = load.stalled(pair), load.job(pair, "due-while-frozen"), load.running(pair, 6)
    parked = load.parked(pair)  # last: what the provider refuses rests the key for all others too
    holder = pair.holder(orphan)
    assert holder is not None
    session = pair.session()
    pair.script(session, [{"text": "posted in the dark"}])
    beside = [t for t in running.turns if (held := pair.holder(t)) and held["pid"] == holder["pid"]]

    pair.freeze("valkey")
    begun = time.monotonic()
    posted = pair.send(session, "are you there?")
    answered_in = time.monotonic() - begun
    pair.http.post(f"/v1/jobs/{due}/run", json={}).raise_for_status()
    pair.kill(holder["pid"])
    running.release()
    time.sleep(max(0.0, begun + 12 - time.monotonic()))
    pair.thaw("valkey")

    due_turn = until(lambda: load.runs_of(pair, due), 20, "the tick's turn")
    more = [parked, orphan, posted, *due_turn]
    name = "broker frozen for 12 s: parked, due, orphaned, posted"
    figures = running.account(name, takeovers=1 + len(beside), more=more)
    assert answered_in < 2 * slack(), answered_in
    assert len(due_turn) == 1
    figures.note = f"POST answered in {answered_in:.2f} s"


def test_nothing_answers_for_a_database_that_is_away(pair: Rig) -> None:
    """A POST while Postgres is away is refused in time, and nothing of it stands afterwards."""
    session = pair.session()
    with pair.held_down("postgres"):
        begun = time.monotonic()
        answer = pair.http.post(f"/v1/sessions/{session}/turns", json={"input": "hello"})
        took = time.monotonic() - begun
    assert (answer.status_code, answer.headers.get("retry-after") is not None) == (503, True)
    assert took < 5 * slack()

    def counted() -> int | None:
        try:
            return pair.one("select count(*) as n from turns where session = %s", session)["n"] + 1
        except psycopg.OperationalError:
            return None

    assert until(counted, 20, "the database") == 1

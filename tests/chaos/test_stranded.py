"""A turn that its worker let go of, while the worker lives: nobody else would ever take it."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from shared import stream
from shared.errors import StoreUnavailable
from shared.store.statements import every, liveness, one, turn_end
from tests.ground import Ground, Rehearsal, ground, until
from workers import loop
from workers.held import Held
from workers.hints import Hints
from workers.ports import Ports

_STANDING = """
select pid from pg_stat_activity where datname = current_database() and state = 'idle in transaction'
  and state_change < clock_timestamp() - interval '1 second'
"""


def _orphans(worker: Ground) -> list[str]:
    return [str(row["id"]) for row in worker.database.read(lambda c: every(c, liveness.ORPHANS, {"limit": 10}))]


def test_a_turn_that_was_let_go_of_is_given_to_the_sweep_and_not_failed(
    worker: Ground, provider: Rehearsal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database was away for longer than anybody waits; when it is back, the turn stands as running and ours."""

    def away(_ports: Ports, _held: Held) -> loop.TurnOutcome:
        raise StoreUnavailable("away for longer than anybody waits")

    turn = str(worker.turn(worker.session(), "hello"))
    with monkeypatch.context() as broken:
        broken.setattr(loop, "run_turn", away)
        worker.look()
    assert worker.one("select status from turns")["status"] == "running"
    assert _orphans(worker) == []

    hints = Hints(worker.turns, worker.database, worker.ports.life, worker.ports.publisher._client)
    hints.start()
    until(lambda: _orphans(worker) == [turn], 10, "the turn given to the sweep")
    hints.stop()


def test_a_turn_in_hand_is_kept(worker: Ground, provider: Rehearsal) -> None:
    """Also while its claim is on the way: the question each second sees rows that memory has not yet."""
    hints = Hints(worker.turns, worker.database, worker.ports.life, worker.ports.publisher._client)
    hints.start()
    for _ in range(40):
        session = worker.session()
        provider.script([{"text": "done", "delay_s": 0.05}], session=str(session))
        worker.turn(session, "hello")
        worker.look()
    hints.stop()
    assert worker.rows("select status from turns where status <> 'done' or takeovers > 0") == []


def test_a_process_that_stood_still_inside_a_transaction_makes_it_again(
    database_url: str, redis_url: str, provider: Rehearsal, tmp_path: Path
) -> None:
    """The server ends such a transaction after five seconds, well before the lease: the turn must not fail for it."""
    provider.reset()
    (tmp_path / "pause").mkdir()
    with ground(database_url, redis_url, provider.url, tmp_path, pause_at=f"finishing:{tmp_path / 'pause'}") as worker:
        session = worker.session()
        provider.script([{"text": "the answer"}], session=str(session))
        turn = worker.turn(session, "stand still")
        looking = threading.Thread(target=worker.look)
        looking.start()
        until(lambda: worker.rows(_STANDING) != [], 10, "the pause")
        until(lambda: worker.rows(_STANDING) == [], 15, "the end of the transaction that stood still")
        (tmp_path / "pause" / "go").touch()
        looking.join(20)

        row = worker.view(turn)
        assert (row["status"], row["answer"], row["takeovers"], row["error_code"]) == ("done", "the answer", 0, None)
        assert [r["status"] for r in worker.rows("select status from calls where turn = %s", turn)] == ["settled"]


def test_a_late_worker_does_not_take_anothers_end_for_its_own(
    database_url: str, redis_url: str, provider: Rehearsal, tmp_path: Path
) -> None:
    """Its call was booked as lost and the turn ended elsewhere: it says nothing to a stream that forgot its fence."""
    provider.reset()
    (tmp_path / "pause").mkdir()
    paused = f"finishing:{tmp_path / 'pause'}"
    with (
        ground(database_url, redis_url, provider.url, tmp_path, pause_at=paused) as worker,
        ground(database_url, redis_url, provider.url, tmp_path) as other,
    ):
        session = worker.session()
        provider.script([{"text": "the late answer"}, {"text": "the answer"}], session=str(session))
        turn = worker.turn(session, "stand still")
        looking = threading.Thread(target=worker.look)
        looking.start()
        until(lambda: worker.rows(_STANDING) != [], 10, "the pause")
        until(lambda: worker.rows(_STANDING) == [], 15, "the end of the transaction that stood still")
        free = {"turn": turn, "session": session, "status": "queued", "error_code": None, "error_text": None}
        assert other.database.read(lambda c: one(c, turn_end.TAKE_AWAY, free)) is not None
        other.look()
        assert other.view(turn)["answer"] == "the answer"
        other.events(turn)
        other.ports.publisher._client.delete(stream.key(turn), stream.fence_key(turn))

        (tmp_path / "pause" / "go").touch()
        looking.join(20)

        assert worker.events(turn) == []
        assert worker.view(turn)["answer"] == "the answer"

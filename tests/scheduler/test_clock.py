"""The test clock: a night passes as a night, in steps with everything at rest after each; a jump is the outage."""

from __future__ import annotations

import json
import threading
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, HTTPServer
from uuid import uuid4

import pytest

from scheduler.clock import ClockMover
from scheduler.room import Room
from scheduler.tick import run_due
from shared.life import Life
from shared.store.statements import admission, one, turn_end
from tests.ground import until
from tests.scheduler.test_tick import job
from tests.scheduler.world import World


class Provider:
    """A server that is told the time, as the rehearsal provider is."""

    def __init__(self) -> None:
        self.told: list[float] = []
        told = self.told

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                assert (self.path, self.headers["x-rehearsal-token"]) == ("/rehearsal/clock", "a token")
                told.append(body["offset_s"])
                self.send_response(200)
                self.send_header("content-length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
                del code, size

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def provider() -> Generator[Provider]:
    made = Provider()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture
def clocked(world: World, provider: Provider) -> World:
    world.changes.update(
        NIGHTSHIFT_TEST_CLOCK="true",
        NIGHTSHIFT_REHEARSAL="true",
        NIGHTSHIFT_PROVIDER_BASE_URL=provider.url,
        NIGHTSHIFT_REHEARSAL_TOKEN="a token",
    )
    return world


def advance(world: World, seconds: float, *, jump: bool = False) -> None:
    world.do("update test_clock set target_s = offset_s + %s, jump = %s", seconds, jump)


def offset(world: World) -> float:
    return world.row("select offset_s from test_clock")["offset_s"]


def test_the_clock_goes_in_steps_of_half_a_minute_and_the_provider_is_told_each(
    clocked: World, provider: Provider
) -> None:
    advance(clocked, 100)
    with clocked.room() as room:
        ClockMover(room).run()
    assert offset(clocked) == 100
    assert provider.told == [0, 30, 60, 90, 99.999, 100]


def test_a_night_runs_each_instant_of_a_job_and_wakes_each_park_in_its_turn(clocked: World) -> None:
    made = job(clocked, cron="0 * * * *", zone="UTC")
    early, late = clocked.admit(), clocked.admit()
    clocked.park(early, 600)
    clocked.park(late, 7200)
    with clocked.room() as room:
        run_due(room)
        advance(clocked, 4 * 3600)
        ClockMover(room).run()
        assert room.counters["wake_missed"] == 0
    ticks = clocked.rows("select status from ticks where job = %s", made)
    assert [row["status"] for row in ticks] == ["started"] * 4
    woken = [clocked.turn(turn)["queued_at"] for turn in (early, late)]
    assert [clocked.turn(turn)["status"] for turn in (early, late)] == ["queued", "queued"]
    assert 6500 < (woken[1] - woken[0]).total_seconds() < 6700


def test_a_jump_is_one_step_and_the_instants_in_it_are_missed(clocked: World, provider: Provider) -> None:
    made = job(clocked, cron="0 * * * *", zone="UTC")
    with clocked.room() as room:
        run_due(room)
        advance(clocked, 4 * 3600, jump=True)
        ClockMover(room).run()
    assert provider.told == [0, 4 * 3600 - 0.001, 4 * 3600]
    ticks = clocked.rows("select status from ticks where job = %s order by instant", made)
    assert [row["status"] for row in ticks] == ["skipped", "skipped", "skipped", "started"]


def test_each_step_waits_for_the_turns_that_it_started(clocked: World) -> None:
    """A worker that takes its time: the clock stands until its turn has ended."""
    turn = clocked.admit()
    life = Life(clocked.settings, "worker", 1, "interactive")
    assert life.start(10)
    seen: list[float] = []

    def work() -> None:
        until(lambda: offset(clocked) >= 30, 10, "the first step")
        with clocked.connection() as connection:
            session = clocked.turn(turn)["session"]
            params = {"session": session, "turn": turn, "holder": life.boot_id, "claim": uuid4()}
            held = one(connection, admission.CLAIM, params)
            assert held is not None
            threading.Event().wait(1.0)  # the call in flight
            seen.append(offset(clocked))
            connection.execute(
                "update inbox set folded_into = null, kind = 'input', turn = null where turn = %s", (turn,)
            )
            params = {
                "session": session, "turn": turn, "fence": held["fence"], "status": "done", "answer": "a",
                "error_code": None, "error_text": None,
            }  # fmt: skip
            assert one(connection, turn_end.FINISH, params)

    working = threading.Thread(target=work)
    working.start()
    try:
        advance(clocked, 60)
        with clocked.room() as room:
            ClockMover(room).run()
            assert room.counters["clock.not_at_rest"] == 0
    finally:
        working.join(20)
        life.stop("test over")
    assert seen == [30]
    assert offset(clocked) == 60


def test_a_turn_that_nobody_can_claim_is_not_waited_for_and_a_running_one_only_so_long(
    clocked: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scheduler.clock.IN_FLIGHT_S", 0.5)
    clocked.admit()
    advance(clocked, 30)
    with clocked.room() as room:
        ClockMover(room).run()
        assert room.counters["clock.not_at_rest"] == 0
        clocked.claim(clocked.admit())
        advance(clocked, 30)
        ClockMover(room).run()
        assert room.counters["clock.not_at_rest"] == 2
    assert offset(clocked) == 60


def test_of_two_schedulers_one_moves_the_clock(clocked: World, provider: Provider) -> None:
    advance(clocked, 3600)
    with clocked.room() as first, clocked.room() as second:
        rooms: list[Room] = [first, second]
        movers = [threading.Thread(target=ClockMover(room).run) for room in rooms]
        for mover in movers:
            mover.start()
        for mover in movers:
            mover.join(60)
    assert offset(clocked) == 3600
    steps = [told for told in provider.told if told]
    assert steps == sorted(steps)


def test_a_provider_that_is_away_does_not_stop_the_clock(clocked: World, provider: Provider) -> None:
    provider.server.shutdown()
    provider.server.server_close()
    advance(clocked, 45)
    with clocked.room() as room:
        ClockMover(room).run()
        assert room.counters["clock.provider_not_told"] == 4
    assert offset(clocked) == 45

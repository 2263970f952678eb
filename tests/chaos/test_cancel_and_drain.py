"""Ends that people ask for: a cancel while everything else is broken, and a worker that is told to stop."""

from __future__ import annotations

import signal
import time

import pytest

from tests.chaos import load
from tests.chaos.figures import TABLE, Figures
from tests.chaos.rig import Rig, slack
from tests.ground import until


@pytest.mark.parametrize("broker", ["there", "frozen"])
def test_a_stalled_call_is_cancelled_within_two_seconds(pair: Rig, broker: str) -> None:
    pair.workers_ready(2)
    turn = load.stalled(pair)
    session = pair.turn(turn)["session_id"]
    if broker == "frozen":
        pair.freeze("valkey")
    begun = time.monotonic()
    try:
        pair.cancel(turn)
        view = pair.ended(turn, 10)
        took = time.monotonic() - begun
    finally:
        pair.thaw("valkey")
    figures = Figures(f"cancel of a stalled call, broker {broker}", turns=1, note=f"ended after {took:.2f} s")
    TABLE.append(figures)
    assert view["status"] == "cancelled"
    assert [call["status"] for call in pair.calls(turn)] == ["cut"]
    pair.wait(inflight=0, session=session)

    following = pair.ended(pair.send(session, "still there?"))

    assert (following["status"], following["answer"]) == ("done", "at last")
    assert took < 2 * slack(), took


def test_a_worker_that_is_told_to_stop_costs_its_turns_nothing(pair: Rig) -> None:
    (one, _) = pair.workers_ready(2)
    running = load.running(pair, 12)
    running.release()

    at = pair.kill(one["pid"], signal.SIGTERM)
    until(lambda: one["pid"] not in pair.pids("worker"), 30 * slack(), "the worker's end")
    ended_in = time.time() - at

    figures = running.account("SIGTERM of one of two workers under 12 turns")
    figures.note = f"exited after {ended_in:.1f} s"
    rows = pair.rows("select attempts, refunds, steps from turns where id = any(%s::uuid[])", list(running.turns))
    assert {tuple(row.values()) for row in rows} == {(0, 0, 5)}
    assert figures.repeated_calls == 0
    assert pair.one("select stop_reason from workers where boot_id = %s", one["boot_id"])["stop_reason"] == "drained"
    pair.workers_ready(2)

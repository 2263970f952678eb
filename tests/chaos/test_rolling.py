"""Draining and upgrades: every process is restarted under load, one by one, and a tool that runs gets its time."""

from __future__ import annotations

import signal
import time
from collections.abc import Generator

import pytest

from deploy.drill import blows, effect, load
from deploy.drill.figures import Figures, account
from deploy.drill.rig import Rig, slack, stack, until
from deploy.drill.run import UP
from deploy.drill.up import EFFECTS_FILE

GRANTED_S = 4.0


@pytest.fixture(scope="module")
def rolling() -> Generator[Rig]:
    with stack(workers=2, concurrency=8, settings={"approve_tools": effect.ASKED}, up=UP) as rig:
        yield rig


def test_a_rolling_restart_under_load_costs_no_turn_and_repeats_no_effect(rolling: Rig) -> None:
    turns = load.effects(rolling, 4) + load.asked(rolling) + load.delegating(rolling)
    for role in ("worker", "worker", "scheduler", "beat", "api"):
        oldest = (
            min(rolling.workers_ready(2), key=lambda row: row["started_at"])["pid"]
            if role == "worker"
            else rolling.pid(role)
        )
        rolling.kill(oldest, signal.SIGTERM)
        if role != "api":
            turns += load.effects(rolling, 2)
        until(lambda pid=oldest: blows.gone(pid), 30 * slack(), f"the end of the {role}")
        until(lambda role=role: len(rolling.pids(role)) == (2 if role == "worker" else 1), 30, f"the next {role}")
    rolling.workers_ready(2)

    figures = Figures("rolling restart")
    account(rolling, figures, turns, seconds=90)

    assert figures.told == []
    assert (figures.unknown, figures.billed_again) == (0, 0)
    rows = rolling.rows(
        "select attempts, takeovers, refunds, error_code from turns where id = any(%s::uuid[])", list(turns.turns)
    )
    assert {tuple(row.values()) for row in rows} == {(0, 0, 0, None)}


def test_a_tool_that_runs_when_its_worker_is_told_to_stop_gets_its_time(rolling: Rig) -> None:
    """Its effect happens once, is told as done, and only then the worker goes; the rest of the turn runs elsewhere."""
    rolling.workers_ready(2)
    pause = rolling.arm("in_tool")
    turns = load.effects(rolling)
    pid = pause.arrived()
    boot = rolling.one("select boot_id from workers where pid = %s and stopped_at is null", pid)["boot_id"]

    rolling.kill(pid, signal.SIGTERM)
    time.sleep(GRANTED_S)
    assert not blows.gone(pid)
    assert not any(turn == turns.turns[0] for turn, *_ in effect.logged(rolling.home / EFFECTS_FILE))
    pause.go()
    until(lambda: blows.gone(pid), 15 * slack(), "the worker's end")

    figures = Figures("SIGTERM in a tool")
    account(rolling, figures, turns)
    assert (figures.told, figures.unknown, figures.billed_again) == ([], 0, 0)
    (turn,) = rolling.rows("select attempts, takeovers from turns where id = %s", turns.turns[0])
    assert tuple(turn.values()) == (0, 0)
    assert rolling.one("select stop_reason from workers where boot_id = %s", boot)["stop_reason"] == "drained"

"""kill -9 of a worker in the middle of a turn, at every point where it could hurt."""

from __future__ import annotations

import pytest
from tests.chaos.figures import account, resume
from tests.chaos.rig import Rig, slack

ANSWER = "the scripted answer"


def test_a_turn_whose_only_worker_is_killed_runs_again_within_five_seconds(alone: Rig) -> None:
    session = alone.session()
    alone.script(session, [{"text": ANSWER, "delay_s": 60}, {"text": ANSWER}])
    turn = alone.send(session, "wait for it")
    alone.wait(inflight=1, session=session)
    before = alone.holder(turn)
    assert before is not None

    killed_at = alone.kill(before["pid"])
    resumed = resume(alone, turn, killed_at, before)

    view = alone.ended(turn)
    figures = account(alone, "kill -9 the only worker, call in flight", [turn], repeats=1)
    figures.resumes.append(resumed)
    assert (view["status"], view["answer"], view["steps_used"], view["steps_refunded"]) == ("done", ANSWER, 1, 1)
    assert [call["status"] for call in alone.calls(turn)] == ["lost", "settled"]
    assert [call["state"] for call in alone.provider.ledger(session)] == ["client_closed", "done"]
    assert figures.clean(), figures
    assert resumed.claimed < 5 * slack(), resumed

"""A turn that leaves a conversation over its threshold has it summarised while the provider still has it."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any
from uuid import UUID

import pytest

from deploy.local.servers import Servers
from shared.values import OnBusy
from tests.ground import Ground, Rehearsal, ground
from tests.loop.test_resume import die, take_away
from tests.shrink.compacting import todo
from tests.shrink.conftest import Bodies, assert_replayed
from workers import answering
from workers.pause import Point
from workers.reduction import consider

LONG = "the work is done, and this is what came of it in many words " * 400


@pytest.fixture(scope="module")
def tight(
    servers: Servers, module_database_url: str, provider: Rehearsal, tmp_path_factory: pytest.TempPathFactory
) -> Generator[Ground]:
    provider.reset()
    home = tmp_path_factory.mktemp("tight")
    more: dict[str, Any] = {"tail_messages": 4, "prune_warm": False, "context_threshold": 0.022}
    with ground(module_database_url, servers.valkey.url, provider.url, home, **more) as made:
        yield made


def _turn(worker: Ground, provider: Rehearsal, *after: dict[str, Any], stop: str = "end_turn") -> tuple[UUID, UUID]:
    """A turn that its answer takes over the threshold, and no call before it."""
    session = worker.session()
    steps = [{"text": f"step {n}", "tools": [todo(n, 100)]} for n in range(2)]
    provider.script([*steps, {"text": LONG, "stop_reason": stop}, *after], session=str(session))
    return session, worker.turn(session, "Do the long work.")


def test_the_summary_reads_the_warm_prompt_and_the_answer_stays_what_it_was(
    tight: Ground, provider: Rehearsal, bodies: Bodies
) -> None:
    session, turn = _turn(tight, provider, {"text": "yes"})
    tight.look()

    row = tight.view(turn)
    assert (row["status"], row["answer"], row["steps"]) == ("done", LONG, 3)
    calls = tight.rows("select purpose, cache_read_tokens, step from calls where turn = %s order by seq", turn)
    assert [call["purpose"] for call in calls] == ["main"] * 3 + ["summary"]
    assert calls[3]["cache_read_tokens"] > 10_000
    (told,) = tight.rows("select decision, cause from reductions where session = %s and decision = 'compact'", session)
    assert told["cause"] == "threshold"
    next_turn = tight.turn(session, "Is it done?")
    tight.look()
    assert tight.view(next_turn)["answer"] == "yes"
    assert_replayed(tight, session, bodies(session))


@pytest.mark.parametrize("stop", ["end_turn", answering.OUTPUT_FULL])
def test_a_worker_that_dies_between_answer_and_summary_leaves_the_answer(
    tight: Ground, provider: Rehearsal, bodies: Bodies, stop: str
) -> None:
    """The next holder finds the answer recorded and ends the turn with it, without another call. One that was cut says
    so."""
    session, turn = _turn(tight, provider, {"text": "no word of this"}, stop=stop)
    assert die(tight, Point.RECORDED, 3)
    assert tight.view(turn)["status"] == "running"
    take_away(tight, turn, session)
    tight.look()
    row = tight.view(turn)
    assert (row["status"], row["answer"], row["steps"]) == ("done", answering.answer(LONG, stop), 3)
    assert (answering.CUT in row["answer"]) is (stop == answering.OUTPUT_FULL)
    assert len(bodies(session)) == 3


def test_words_that_come_during_the_summary_are_answered(
    tight: Ground, provider: Rehearsal, bodies: Bodies, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, turn = _turn(tight, provider, {"text": "I have read it"})
    real = consider.after_turn

    def meanwhile(*given: Any) -> None:
        tight.turn(session, "one thing more", on_busy=OnBusy.STEER)
        real(*given)

    monkeypatch.setattr(consider, "after_turn", meanwhile)
    tight.look()
    row = tight.view(turn)
    assert (row["status"], row["answer"]) == ("done", "I have read it")
    assert b"one thing more" in bodies(session)[-1]
    assert_replayed(tight, session, bodies(session))

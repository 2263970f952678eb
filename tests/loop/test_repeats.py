"""What becomes of a run that was started when its worker was lost, by how its tool may be repeated: the drill's own
tools, on a far side that outlives the worker."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import pytest

from deploy.drill import effect
from shared import effects
from shared.values import EventKind, Repeat, RunStatus
from tests.ground import Ground, Rehearsal
from tests.loop.dying import Died, DiesAt, die, take_away
from tests.waiting.acts import cancelled
from workers.pause import Pauses, Point
from workers.tools import checking, registry
from workers.tools.context import Arguments, ToolContext
from workers.tools.tool import CannotTell, Check, Checked, Tool

BEFORE, AFTER = Point.IN_TOOL, Point.AFTER_TOOL


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "effects.log"


@pytest.fixture
def offer(monkeypatch: pytest.MonkeyPatch, log: Path) -> Callable[..., Tool]:
    """Put one of the drill's tools among those of this process; the worker that runs it first dies at `dies`."""

    def install(name: str, dies: Point = Point.FINISHED, **changes: Any) -> Tool:
        found = {tool.name: tool for tool in effect.tools(log, cast("Pauses", DiesAt(dies)))}
        tool = replace(found[name], **changes)
        monkeypatch.setitem(vars(registry)["_ALL"], name, tool)
        return tool

    return install


def _lost(worker: Ground, provider: Rehearsal, tool: str, point: Point) -> tuple[UUID, UUID]:
    """A turn whose worker died while its one run was `started`: before its effect, or after it."""
    session = worker.session()
    provider.script([{"tools": [{"name": tool, "input": {}}]}, {"text": "I see"}], session=str(session))
    turn = worker.turn(session, "have your effect")
    if point is BEFORE:
        with pytest.raises(Died):
            worker.look()
    else:
        assert die(worker, point)
    take_away(worker, turn, session)
    return turn, session


def _run(worker: Ground, turn: UUID) -> tuple[RunStatus, str]:
    row = worker.one("select * from tool_runs where turn = %s", turn)
    return RunStatus(row["status"]), row["result"]


def _told(worker: Ground, turn: UUID) -> list[str]:
    return [event.data["status"] for event in worker.events(turn) if event.kind is EventKind.TOOL_FINISHED]


def _over(worker: Ground) -> None:
    """The time of every lost run is over."""
    worker.execute(
        "update tool_runs r set may_run_until = clock_timestamp(), fence = s.fence from sessions s"
        " where s.id = r.session and r.status = 'started'"
    )


@pytest.mark.parametrize("point", [BEFORE, AFTER])
def test_a_keyed_run_runs_again_under_the_same_key_and_has_its_effect_once(
    worker: Ground, provider: Rehearsal, offer: Callable[..., Tool], log: Path, point: Point
) -> None:
    offer(effect.KEYED, point)
    turn, _ = _lost(worker, provider, effect.KEYED, point)

    worker.look()

    assert _run(worker, turn) == (RunStatus.DONE, effect.HAPPENED)
    assert worker.view(turn)["status"] == "done"
    assert effect.logged(log) == {effect.Key(str(turn), 1, 1): 1}
    row = worker.one("select holder, may_run_until > started_at as later from tool_runs where turn = %s", turn)
    assert row == {"holder": worker.ports.life.boot_id, "later": True}


def test_the_key_of_a_run_is_its_own_and_the_same_whoever_runs_it(tmp_path: Path) -> None:
    def key(turn: str, step: int, ordinal: int) -> str:
        return ToolContext("s", turn, step, ordinal, tmp_path, None, lambda: False, 0.0).key

    one = key("0195", 1, 11)
    assert UUID(one)
    assert key("0195", 1, 11) == one
    assert len({one, key("0195", 11, 1), key("0195", 1, 1), key("0196", 1, 11)}) == 4


def test_a_keyed_run_that_was_lost_and_may_not_run_again_is_unknown(
    worker: Ground, provider: Rehearsal, offer: Callable[..., Tool], log: Path
) -> None:
    """That it was cancelled before it ran, or refused, could be a lie."""
    offer(effect.KEYED)
    turn, _ = _lost(worker, provider, effect.KEYED, AFTER)
    worker.execute(
        "insert into stops (id, scope, subject, placed_by, note) values (gen_random_uuid(), 'tool', %s, %s, 'enough')",
        effect.KEYED, worker.person,
    )  # fmt: skip

    worker.look()

    status, text = _run(worker, turn)
    assert status is RunStatus.UNKNOWN
    assert "outcome unknown" in text
    assert _told(worker, turn) == ["unknown"]
    assert effect.logged(log).total() == 1
    assert worker.view(turn)["status"] == "done"


def test_a_keyed_run_of_a_turn_that_is_cancelled_while_nobody_holds_it_is_unknown(
    worker: Ground, provider: Rehearsal, offer: Callable[..., Tool]
) -> None:
    offer(effect.KEYED)
    turn, _ = _lost(worker, provider, effect.KEYED, AFTER)

    cancelled(worker, turn)

    assert worker.one("select status from tool_runs where turn = %s", turn)["status"] == "unknown"
    said = worker.one("select content from messages where turn = %s and author = 'tool'", turn)["content"]
    assert "outcome unknown" in said


def test_a_checkable_run_that_had_happened_is_done_with_what_its_check_tells(
    worker: Ground, provider: Rehearsal, offer: Callable[..., Tool], log: Path
) -> None:
    offer(effect.CHECKED)
    turn, _ = _lost(worker, provider, effect.CHECKED, AFTER)

    worker.look()

    assert _run(worker, turn) == (RunStatus.DONE, effect.HAPPENED)
    assert (worker.view(turn)["status"], worker.view(turn)["answer"]) == ("done", "I see")
    assert effect.logged(log).total() == 1
    assert _told(worker, turn) == ["done"]


def test_a_checkable_run_that_did_not_happen_runs_again_once_its_time_is_over(
    worker: Ground, provider: Rehearsal, offer: Callable[..., Tool], log: Path
) -> None:
    offer(effect.CHECKED, BEFORE)
    turn, _ = _lost(worker, provider, effect.CHECKED, BEFORE)
    _over(worker)

    worker.look()

    assert _run(worker, turn) == (RunStatus.DONE, effect.HAPPENED)
    assert worker.view(turn)["status"] == "done"
    assert effect.logged(log).total() == 1


def test_nobody_believes_that_a_run_did_not_happen_while_it_still_may(
    worker: Ground, provider: Rehearsal, offer: Callable[..., Tool], log: Path
) -> None:
    """Its worker, taken for dead, acts while the turn sleeps: the effect is there once, and is told."""
    offer(effect.CHECKED, BEFORE)
    turn, _ = _lost(worker, provider, effect.CHECKED, BEFORE)

    worker.look()

    asleep = worker.view(turn)
    assert (asleep["status"], asleep["parked_on"], asleep["attempts"]) == ("parked", "time", 0)
    assert 0 < (asleep["wake_at"] - asleep["parked_at"]).total_seconds() <= effect.CHECKED_S
    effect.append(log, effect.Key(str(turn), 1, 1))
    worker.execute("update turns set status = 'queued', parked_on = null, parked_at = null, wake_at = null")
    worker.look()
    assert _run(worker, turn) == (RunStatus.DONE, effect.HAPPENED)
    assert effect.logged(log).total() == 1
    assert worker.view(turn)["status"] == "done"


def _says(context: ToolContext, arguments: Arguments) -> Checked:
    return CannotTell("the far side has forgotten")


def _raises(context: ToolContext, arguments: Arguments) -> Checked:
    raise OSError("/home/somebody/secret is not there")


def _hangs(context: ToolContext, arguments: Arguments) -> Checked:
    threading.Event().wait(30)
    return CannotTell("too late to be heard")


@pytest.mark.parametrize(
    ("read", "why"),
    [
        (_says, "the far side has forgotten"), (_raises, "the register failed (OSError)"),
        (_hangs, "the register did not answer in time"),
    ],
    ids=["says so", "raises", "hangs"],
)  # fmt: skip
def test_a_check_that_cannot_tell_leaves_the_run_unknown(
    worker: Ground, provider: Rehearsal, offer: Callable[..., Tool], log: Path, monkeypatch: pytest.MonkeyPatch,
    read: Callable[[ToolContext, Arguments], Checked], why: str,
) -> None:  # fmt: skip
    monkeypatch.setattr(checking, "CHECK_S", 0.5)
    offer(effect.CHECKED, check=Check("the register", read), look="ask the register")
    turn, _ = _lost(worker, provider, effect.CHECKED, AFTER)

    worker.look()

    status, text = _run(worker, turn)
    assert status is RunStatus.UNKNOWN
    assert f"({why})" in text
    assert text.endswith("check before repeating it (ask the register).")
    assert _told(worker, turn) == ["unknown"]
    assert effect.logged(log).total() == 1
    assert worker.view(turn)["status"] == "done"


def test_the_time_until_which_it_may_have_happened_is_never_told_too_early() -> None:
    at = datetime(2026, 3, 1, 23, 59, 59, 1, tzinfo=UTC)
    assert "may yet happen, until 00:00:00 UTC;" in effects.unknown(at)
    assert "until 23:59:59 UTC;" in effects.unknown(at - timedelta(microseconds=1))
    assert "may yet happen, at any time;" in effects.unknown(None)


def test_a_tool_is_checkable_if_it_has_a_check_and_only_then(log: Path) -> None:
    tool = effect.tools(log, Pauses(""))[0]
    with pytest.raises(ValueError, match="only then"):
        replace(tool, repeat=Repeat.CHECKABLE)
    with pytest.raises(ValueError, match="only then"):
        replace(tool, check=Check("the register", _says))

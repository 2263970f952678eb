"""A summary that something breaks into: nothing half stands, nothing is paid twice, nobody's words are lost."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable
from decimal import Decimal
from typing import Any, cast
from uuid import UUID

import pytest

from shared.errors import LeaseLost
from shared.values import OnBusy
from tests.ground import Ground, Rehearsal
from tests.loop.dying import Died, DiesAt, take_away
from tests.shrink.compacting import GOOD, TAIL, claim, compact, go_on, long_session
from tests.shrink.conftest import Bodies, advance, assert_replayed
from workers.compaction import run
from workers.held import Held, Interrupt
from workers.pause import Pauses, Point

WENT_ON: dict[str, Any] = {"thinking": "hm", "text": "went on"}
POINTS = [Point.RESERVED, Point.BEFORE_CALL, Point.IN_STREAM, Point.AFTER_CALL, Point.RECORDING, Point.RECORDED]


def die(shared: Ground, held: Held, point: Point) -> None:
    ports = dataclasses.replace(shared.ports, pauses=cast("Pauses", DiesAt(point, 1)))
    with pytest.raises(Died):
        run.compact(ports, held, "threshold", {}, TAIL)


@pytest.mark.parametrize("point", POINTS)
def test_a_worker_that_dies_at_a_summary_leaves_nothing_half(
    shared: Ground, provider: Rehearsal, point: Point, bodies: Bodies
) -> None:
    session = long_session(shared, provider, [{"text": GOOD}], [WENT_ON], steps=4)
    turn = shared.turn(session, "And now?")
    die(shared, claim(shared), point)
    take_away(shared, turn, session)
    held = claim(shared)

    assert not shared.rows("select 1 from edits where session = %s and kind = 'summary'", session)
    row = shared.one("select * from sessions where id = %s", session)
    assert (row["compact_last"], row["reserved_usd"], row["fallback_streak"]) == ("open", 0, 0)
    call = shared.one("select * from calls where session = %s order by seq desc limit 1", session)
    assert (call["purpose"], call["status"]) == ("summary", "settled" if point is Point.RECORDED else "lost")
    assert held.failed_purpose is None, "a summary is no step that has to be made again"
    came = compact(shared, held)
    assert isinstance(came, run.Blocked), "one attempt in five minutes, whoever dies at it"
    assert "did not come to its end" in came.message
    go_on(shared, held)
    view = shared.view(turn)
    assert (view["answer"], view["steps"] - view["refunds"]) == ("went on", 1)
    if point not in (Point.RESERVED, Point.BEFORE_CALL):  # those never came to the provider
        assert_replayed(shared, session, bodies(session))


def test_after_five_minutes_the_next_worker_begins_anew(shared: Ground, provider: Rehearsal) -> None:
    session = long_session(shared, provider, [{"text": GOOD}], [], steps=4)
    turn = shared.turn(session, "And now?")
    die(shared, claim(shared), Point.BEFORE_CALL)
    take_away(shared, turn, session)
    advance(shared, 300)
    came = compact(shared, claim(shared))
    assert isinstance(came, run.Compacted)
    assert came.fallback is None


def test_a_prompt_that_does_not_fit_is_made_smaller_without_the_model_after_its_worker_died(
    shared: Ground, provider: Rehearsal
) -> None:
    """Else a turn would end for nothing but the death of a worker. It is no second call within the five minutes."""
    session = long_session(shared, provider, [{"text": GOOD}], [WENT_ON], steps=4)
    turn = shared.turn(session, "And now?")
    die(shared, claim(shared), Point.BEFORE_CALL)
    take_away(shared, turn, session)
    held = claim(shared)
    came = compact(shared, held, "overflow")
    assert isinstance(came, run.Compacted)
    assert came.fallback == "lost"
    assert isinstance(compact(shared, held, "overflow"), run.Blocked)
    calls = shared.rows("select status from calls where session = %s and purpose = 'summary'", session)
    assert [call["status"] for call in calls] == ["lost"]
    go_on(shared, held)
    assert shared.view(turn)["answer"] == "went on"


def during(shared: Ground, provider: Rehearsal, held: Held, act: Callable[[], None]) -> Any:
    """What a compaction comes to when this happens while its call is out."""
    came: list[Any] = []

    def work() -> None:
        try:
            came.append(compact(shared, held))
        except LeaseLost as lost:
            came.append(lost)

    provider.post("hold", {"hold": True})
    try:
        thread = threading.Thread(target=work)
        thread.start()
        provider.ask("GET", "wait", params={"inflight": 1}).raise_for_status()
        act()
    finally:
        provider.post("hold", {"hold": False})
    thread.join(20)
    return came[0]


def test_words_that_come_during_a_summary_do_not_cut_it_and_are_read_after_it(
    shared: Ground, provider: Rehearsal, bodies: Bodies
) -> None:
    session = long_session(shared, provider, [{"text": GOOD}], [WENT_ON], steps=4)
    turn = shared.turn(session, "And now?")
    held = claim(shared)

    def words() -> None:
        shared.turn(session, "One more thing.", on_busy=OnBusy.STEER)
        held.steer(held.call_in_flight())

    came = during(shared, provider, held, words)
    assert isinstance(came, run.Compacted)
    assert came.fallback is None
    go_on(shared, held)
    assert shared.view(turn)["answer"] == "went on"
    assert b"One more thing." in bodies(session)[-1]
    assert_replayed(shared, session, bodies(session))


def test_a_cancel_during_a_summary_frees_it_at_once_and_writes_no_edit(shared: Ground, provider: Rehearsal) -> None:
    session = long_session(shared, provider, [{"text": GOOD}], [], steps=4)
    turn = shared.turn(session, "And now?")
    held = claim(shared)
    came = during(shared, provider, held, lambda: held.interrupt(Interrupt.CANCEL))
    assert came == run.Failed("cancel", came.message)
    go_on(shared, held)
    assert shared.view(turn)["status"] == "cancelled"
    assert not shared.rows("select 1 from edits where session = %s and kind = 'summary'", session)
    call = shared.one("select * from calls where session = %s order by seq desc limit 1", session)
    assert (call["status"], call["error_code"], call["cost_usd"]) == ("cut", "cut_cancel", 0)
    assert shared.one("select reserved_usd from sessions where id = %s", session)["reserved_usd"] == 0


def test_a_worker_whose_turn_was_taken_away_writes_no_summary(shared: Ground, provider: Rehearsal) -> None:
    session = long_session(shared, provider, [{"text": GOOD}], [], steps=4)
    turn = shared.turn(session, "And now?")
    held = claim(shared)
    came = during(shared, provider, held, lambda: take_away(shared, turn, session))
    assert isinstance(came, LeaseLost)
    assert not shared.rows("select 1 from edits where session = %s and kind = 'summary'", session)


class LosesAt:
    """The turn is taken away when a point is reached, and its worker does not know."""

    def __init__(self, point: Point, take: Callable[[], None]) -> None:
        self._point, self._take = point, take

    def inside(self, point: Point) -> bool:
        return point is self._point

    def at(self, point: Point) -> None:
        if point is self._point:
            self._take()


def test_a_worker_that_lost_its_turn_after_the_summary_was_paid_writes_no_edit(
    shared: Ground, provider: Rehearsal
) -> None:
    session = long_session(shared, provider, [{"text": GOOD}], [], steps=4)
    turn = shared.turn(session, "And now?")
    held = claim(shared)
    lost = LosesAt(Point.RECORDED, lambda: take_away(shared, turn, session))
    with pytest.raises(LeaseLost):
        run.compact(dataclasses.replace(shared.ports, pauses=cast("Pauses", lost)), held, "threshold", {}, TAIL)
    assert not shared.rows("select 1 from edits where session = %s and kind = 'summary'", session)
    assert not shared.rows("select 1 from reductions where session = %s", session)
    assert shared.one("select compact_last from sessions where id = %s", session)["compact_last"] == "open"


def capped(shared: Ground, session: UUID, usd: Decimal) -> None:
    shared.execute("update sessions set cap_usd = spent_usd + %s where id = %s", usd, session)


def test_a_summary_that_a_cap_does_not_allow_is_replaced_without_a_call(shared: Ground, provider: Rehearsal) -> None:
    session = long_session(shared, provider, [{"text": GOOD}], [], steps=4)
    capped(shared, session, Decimal("0.0001"))
    shared.turn(session, "And now?")
    came = compact(shared, claim(shared))
    assert isinstance(came, run.Compacted)
    assert came.fallback == "session_cap_reached"
    assert not shared.rows("select 1 from calls where session = %s and purpose = 'summary'", session)
    row = shared.one("select * from sessions where id = %s", session)
    assert (row["summary_after"], row["summary_failures"]) == (None, 0), "the summariser did not fail"

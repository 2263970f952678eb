"""A turn whose caps have no room for its next call waits without a worker: whoever makes room wakes it, and nobody's
patience is for ever."""

from __future__ import annotations

import threading
from collections.abc import Generator
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from scheduler.parks import rederive
from scheduler.wake import Waker
from shared.errors import Refused
from shared.store import caps
from shared.store.pool import Connection
from shared.store.waits import Woken
from shared.values import OnBusy, TurnClass
from tests.ground import Ground, Rehearsal, ground, until
from tests.waiting.acts import advance, cancelled, children, delegate, first_call_usd, tool
from tests.waiting.held_still import Runner
from tests.waiting.invariants import ALWAYS, Memory
from tests.waiting.living import room
from workers import budget
from workers.held import Held
from workers.pause import Point

TINY = Decimal("0.0001")
LOOK = {"text": "so far: one", "tools": [tool("list_files")]}


@pytest.fixture
def small(database_url: str, redis_url: str, provider: Rehearsal, tmp_path: Path) -> Generator[Ground]:
    """Calls whose worst case is a cent or two, so that caps of cents bite; and nothing but money stops who repeats."""
    provider.reset()
    with ground(database_url, redis_url, provider.url, tmp_path, max_output_tokens=500, repeat_stale=0) as made:
        yield made


def _cap(worker: Ground, scope: str, subject: UUID, usd: Decimal | None) -> Woken | None:
    change = caps.of_turn if scope == "turn" else caps.of_session

    def work(connection: Connection) -> Woken | None:
        with connection.transaction():
            return change(connection, subject, worker.person, usd)

    return worker.database.read(work)


def _short(worker: Ground, provider: Rehearsal, scope: str = "turn", cap: Decimal = TINY) -> tuple[UUID, UUID]:
    """A turn whose first call does not fit, and what its cap is of."""
    session = worker.session(**({"cap_usd": cap} if scope == "session" else {}))
    provider.script([{"text": "at last"}], session=str(session))
    turn = worker.turn(session, "go", **({"cap_usd": cap} if scope == "turn" else {}))
    worker.look()
    return turn, turn if scope == "turn" else session


def _after_one_call(worker: Ground, provider: Rehearsal, *replies: Any, scope: str = "turn", **more: Any) -> Any:
    """Session and turn under a cap that has room for the first call and for no second one."""
    session = worker.session(**({"cap_usd": TINY} if scope == "session" else {}))
    provider.script(list(replies), session=str(session))
    turn = worker.turn(session, "go", **({"cap_usd": TINY} if scope == "turn" else {}), **more)
    worker.look()
    _cap(worker, scope, turn if scope == "turn" else session, worker.view(turn)["short_usd"])
    worker.look()
    row = worker.view(turn)
    assert (row["status"], row["parked_on"], row["step"]) == ("parked", "money", 1)
    return session, turn


@pytest.mark.parametrize("scope", ["turn", "session"])
def test_a_turn_without_room_for_its_call_waits_and_goes_on_when_the_cap_is_raised(
    worker: Ground, provider: Rehearsal, scope: str
) -> None:
    turn, subject = _short(worker, provider, scope)
    row = worker.view(turn)
    assert (row["status"], row["parked_on"], row["holder"], row["steps"]) == ("parked", "money", None, 0)
    assert (row["spent_usd"], row["reserved_usd"], row["attempts"]) == (0, 0, 0)
    assert row["wake_at"] == row["short_until"] is not None
    (parked,) = [event for event in worker.events(turn) if event.kind == "turn.parked"]
    assert parked.data["reason"] == "money"
    assert f"the {scope}'s cap of $0.0001 has $0.0001 left" in parked.data["why"]
    needs: Decimal = row["short_usd"]
    assert needs > TINY
    assert _cap(worker, scope, subject, needs / 2) == Woken(turn, None)  # it is short still
    assert _cap(worker, scope, subject, needs) == Woken(turn, TurnClass.INTERACTIVE)
    worker.look()
    row = worker.view(turn)
    assert (row["status"], row["answer"], row["short_until"]) == ("done", "at last", None)
    assert row["spent_usd"] <= needs
    audit = worker.rows("select action, detail from audit where subject = %s order by id", str(subject))
    assert [line["action"] for line in audit] == [f"cap.{scope}"] * 2
    assert audit[0]["detail"] == f"from $0.0001 to ${needs / 2}"


def test_a_cap_that_is_taken_away_wakes_too(worker: Ground, provider: Rehearsal) -> None:
    turn, _ = _short(worker, provider)
    woken = _cap(worker, "turn", turn, None)
    assert woken is not None
    assert woken.turn_class is TurnClass.INTERACTIVE
    worker.look()
    assert worker.view(turn)["status"] == "done"


def test_with_both_caps_short_the_second_one_that_is_raised_wakes(worker: Ground, provider: Rehearsal) -> None:
    session = worker.session(cap_usd=TINY)
    turn = worker.turn(session, "go", cap_usd=TINY)
    worker.look()
    assert _cap(worker, "turn", turn, Decimal(1)) == Woken(turn, None)
    assert _cap(worker, "session", session, Decimal(1)) == Woken(turn, TurnClass.INTERACTIVE)
    worker.look()
    assert worker.view(turn)["status"] == "done"


def test_people_are_told_of_half_of_a_cap_once_and_anew_when_it_was_raised(small: Ground, provider: Rehearsal) -> None:
    """The limits of what the model reads are others (70 and 90 %)."""
    session = small.session()
    provider.script([{**LOOK, "text": "word " * 200}] * 80, session=str(session))
    turn = small.turn(session, "go", cap_usd=Decimal("0.1"))

    def told() -> list[tuple[int, str]]:
        events = [event.data for event in small.events(turn) if event.kind == "budget.warning"]
        return [(data["percent"], data["of"]) for data in events if "of" in data]

    small.look()
    row = small.view(turn)
    assert (row["parked_on"], row["error_text"], told()) == ("money", None, [(50, "turn")])
    _cap(small, "turn", turn, small.view(turn)["spent_usd"] * 3)
    small.look()
    row = small.view(turn)
    assert row["parked_on"] == "money"
    assert told() == [(50, "turn"), (50, "turn"), (80, "turn")], (row["spent_usd"], row["cap_usd"], row["steps"])


def test_people_are_told_at_50_80_and_100_per_cent() -> None:
    cap = Decimal(10)
    found = [budget.passed(Decimal(spent), cap) for spent in ("4.99", "5", "7.99", "8", "9.99", "10", "11")]
    assert found == [0, 50, 50, 80, 80, 100, 100]
    assert budget.passed(Decimal(1), None) == 0


def test_what_a_turn_had_done_stands_while_it_waits_and_is_not_done_again(small: Ground, provider: Rehearsal) -> None:
    session, turn = _after_one_call(small, provider, LOOK, {"text": "two"})
    small.turn(session, "and be brief", on_busy=OnBusy.STEER)
    assert small.view(turn)["status"] == "parked"  # words are no money
    _cap(small, "turn", turn, Decimal(1))
    small.look()
    row = small.view(turn)
    assert (row["status"], row["answer"], row["steps"]) == ("done", "two", 2)
    assert all(call["status"] == 200 for call in provider.ledger(session))
    kinds = [m["author"] for m in small.rows("select author from messages where session = %s order by id", session)]
    assert kinds == [str(small.person), "model", "tool", str(small.person), "model"]


@pytest.mark.parametrize("scope", ["turn", "session"])
def test_nobody_waits_for_money_for_ever(small: Ground, provider: Rehearsal, scope: str) -> None:
    """The limit is the clock's: woken once more, it looks whether there is room, and ends with what it has said."""
    session, turn = _after_one_call(small, provider, LOOK, scope=scope)
    with room(small) as sweeper:
        waker = Waker(sweeper)
        assert waker.run() == 0
        advance(small, small.settings.money_limit_s + 1)
        assert waker.run() == 1
        assert sweeper.counters["wake_missed"] == 0
    small.look()
    row = small.view(turn)
    assert (row["status"], row["error_code"], row["answer"]) == ("failed", f"{scope}_cap_reached", "so far: one")
    assert "nobody raised it within 24 h" in row["error_text"]
    _cap(small, "session", session, None)
    following = small.turn(session, "next")
    small.look()
    assert small.view(following)["status"] == "done"


def test_a_second_wait_has_a_limit_of_its_own(small: Ground, provider: Rehearsal) -> None:
    _, turn = _after_one_call(small, provider, LOOK, LOOK)
    first = small.view(turn)
    advance(small, 200)  # while the cache is warm: what the next call may cost does not change
    _cap(small, "turn", turn, first["spent_usd"] + first["short_usd"])
    small.look()
    row = small.view(turn)
    assert (row["parked_on"], row["step"]) == ("money", 2)
    assert (row["short_until"] - first["short_until"]).total_seconds() >= 200


def test_a_raise_in_the_moment_in_which_the_turn_goes_to_sleep_is_not_lost(worker: Ground, provider: Rehearsal) -> None:
    session = worker.session()
    turn = worker.turn(session, "go", cap_usd=TINY)
    runner = Runner(worker, frozenset({Point.PARKING}))
    thread = threading.Thread(target=lambda: _cap(worker, "turn", turn, Decimal(1)))
    thread.start()
    until(lambda: bool(worker.rows("select 1 from pg_locks where not granted")), 10, "the raise waits for the sleeper")
    runner.let_go()
    thread.join(20)
    runner.arrive()
    assert not worker.rows(ALWAYS["a turn that sleeps for a reason that is gone"])
    Memory().look(worker)
    worker.look()
    assert worker.view(turn)["status"] == "done"


def test_a_raise_right_before_the_turn_goes_to_sleep_keeps_it_awake(
    worker: Ground, provider: Rehearsal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has decided that there is no room, and has locked nothing yet."""
    session = worker.session()
    turn = worker.turn(session, "go", cap_usd=TINY)
    seen: list[bool] = []
    real = Held.must_stop

    def raised_meanwhile(held: Held) -> bool:
        if not seen:
            seen.append(True)
            _cap(worker, "turn", turn, Decimal(1))
        return real(held)

    monkeypatch.setattr(Held, "must_stop", raised_meanwhile)
    worker.look()
    row = worker.view(turn)
    assert (seen, row["status"], row["takeovers"]) == ([True], "done", 0)
    assert "turn.parked" not in [event.kind for event in worker.events(turn)]


@pytest.mark.parametrize("scope", ["turn", "session"])
def test_a_cap_that_is_lowered_while_a_turn_runs_holds_from_the_next_call_on(
    small: Ground, provider: Rehearsal, scope: str
) -> None:
    session = small.session()
    provider.script([LOOK, {"text": "two"}], session=str(session))
    turn = small.turn(session, "go")
    runner = Runner(small, frozenset({Point.AFTER_CALL}))
    _cap(small, scope, turn if scope == "turn" else session, TINY)
    runner.let_go()
    assert runner.arrive() == "over"
    row = small.view(turn)
    assert (row["parked_on"], row["step"], row["steps"]) == ("money", 1, 1)
    assert len(provider.ledger(session)) == 1


def test_room_that_nobody_told_of_is_found_by_the_sweep_and_counted(worker: Ground, provider: Rehearsal) -> None:
    turn, _ = _short(worker, provider)
    with room(worker) as sweeper:
        advance(worker, 6)
        assert rederive(sweeper) == 0
        worker.execute("update turns set cap_usd = 1 where id = %s", turn)
        assert (rederive(sweeper), sweeper.counters["wake_missed"]) == (1, 1)
    worker.look()
    assert worker.view(turn)["status"] == "done"


def test_a_child_without_room_fails_and_its_parent_goes_on(small: Ground, provider: Rehearsal) -> None:
    """What it may spend is its parent's to give: raising its cap alone would pass that of its parent, which waits."""
    session = small.session()
    provider.script([{"tools": [delegate("one")]}, {"text": "then alone"}], session=str(session))
    turn = small.turn(session, "go", cap_usd=Decimal("0.03"))
    small.look_once(TurnClass.INTERACTIVE)
    (child,) = children(small, turn)
    with pytest.raises(Refused) as refused:
        _cap(small, "turn", child["id"], Decimal(1))
    assert refused.value.code == "cap_of_child"
    with pytest.raises(Refused) as refused:
        _cap(small, "session", child["session"], Decimal(1))
    assert refused.value.code == "cap_of_child"
    small.look()
    (child,) = children(small, turn)
    assert (child["status"], child["error_code"]) == ("failed", "turn_cap_reached")
    row = small.view(turn)
    assert (row["status"], row["answer"], row["children_promised_usd"]) == ("done", "then alone", 0)


def test_what_a_child_gives_back_wakes_a_parent_that_waits_for_money(small: Ground, provider: Rehearsal) -> None:
    """A child in the background holds half of what was left; with its end the other half and more is there."""
    session = small.session()
    provider.script(
        [{"text": "so", "tools": [delegate("apart", background=True)]}, {"text": "over"}, {"text": "told"}],
        session=str(session),
    )
    provider.script([{"text": "found"}])
    turn = small.turn(session, "go", cap_usd=first_call_usd(small) * Decimal("1.5"))
    small.look_once(TurnClass.INTERACTIVE)
    assert small.view(turn)["parked_on"] == "money"
    small.look_once(TurnClass.CHILD)
    assert small.view(turn)["status"] == "queued"
    small.look()
    assert small.view(turn)["status"] == "done"


def test_a_turn_that_waits_for_money_is_cancelled_like_any_other(worker: Ground, provider: Rehearsal) -> None:
    turn, _ = _short(worker, provider)
    cancelled(worker, turn)
    assert worker.view(turn)["status"] == "cancelled"
    with pytest.raises(Refused) as refused:
        _cap(worker, "turn", turn, Decimal(1))
    assert refused.value.code == "turn_over"


def test_the_last_call_that_has_no_room_waits_too_and_repeats_nothing(small: Ground, provider: Rehearsal) -> None:
    """The steps are used up and the results stand when the call for the last words does not fit."""
    # A last call leaves the tools out, and would fit into what is left of little.
    much = {**LOOK, "text": "so far " * 140}
    _, turn = _after_one_call(small, provider, much, {"text": "the last words"}, max_steps=1)
    _cap(small, "turn", turn, Decimal(1))
    small.look()
    row = small.view(turn)
    assert (row["status"], row["answer"]) == ("done", "the last words")
    purposes = small.rows("select purpose from calls where turn = %s order by seq", turn)
    assert [call["purpose"] for call in purposes] == ["main", "final"]


@pytest.mark.parametrize(("more", "code"), [({"call_cap_usd": TINY}, "call_cap_reached"), ({}, "price_unknown")])
def test_what_no_raise_of_a_turns_cap_would_mend_is_refused_with_its_reason(
    database_url: str, redis_url: str, provider: Rehearsal, tmp_path: Path, more: dict[str, Any], code: str
) -> None:
    with ground(database_url, redis_url, provider.url, tmp_path, **more) as worker:
        session = worker.session(**({} if more else {"model": "rehearsal-1"}))
        turn = worker.turn(session, "go", cap_usd=Decimal(1))
        worker.look()
        row = worker.view(turn)
    assert (row["status"], row["error_code"]) == ("failed", code)
    assert "NIGHTSHIFT_CALL_CAP_USD" in row["error_text"] if more else "remove the cap" in row["error_text"]

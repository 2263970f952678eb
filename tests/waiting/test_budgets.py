"""Caps that many turns share: drawn in blocks, never passed, parked on, and awake when there is room again."""

from __future__ import annotations

from collections.abc import Generator
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from scheduler.budgets import give_back, settle, tell, wake
from scheduler.takeover import take_orphans
from shared.prices import OwnPrice
from shared.store import principals
from shared.store.pool import Connection
from shared.values import PrincipalKind, Role, TurnClass
from tests.ground import Ground, Rehearsal, ground, until
from tests.waiting.acts import advance, delegate, tool
from tests.waiting.held_still import Runner
from tests.waiting.living import room, sweeping, working
from workers import budget
from workers.budget import Cap
from workers.pause import Point

LOOK = {"text": "so far: one", "tools": [tool("list_files")]}


@pytest.fixture
def small(database_url: str, redis_url: str, provider: Rehearsal, tmp_path: Path) -> Generator[Ground]:
    """Calls whose worst case is a cent or two, so that caps of cents bite."""
    provider.reset()
    with ground(database_url, redis_url, provider.url, tmp_path, max_output_tokens=500) as made:
        yield made


def _cap(worker: Ground, scope: str, subject: object, period: str, usd: str) -> None:
    worker.execute(
        "insert into budget_caps values (%s, %s, %s, %s)"
        " on conflict (scope, id, period) do update set cap_usd = excluded.cap_usd",
        scope, str(subject), period, Decimal(usd),
    )  # fmt: skip


def _window(worker: Ground, scope: str) -> dict[str, Any]:
    return worker.one("select * from budgets where scope = %s", scope)


def _asked(worker: Ground, provider: Rehearsal, *replies: Any, **more: Any) -> UUID:
    session = worker.session()
    provider.script(list(replies), session=str(session))
    return worker.turn(session, "go", **more)


def _job(worker: Ground) -> tuple[UUID, UUID]:
    """(its owner, the job)."""

    def work(connection: Connection) -> tuple[UUID, UUID]:
        owner = principals.ensure_principal(connection, "owner", PrincipalKind.PERSON, Role.MEMBER)
        acts = principals.ensure_principal(connection, "job: news", PrincipalKind.JOB, Role.MEMBER)
        row = connection.execute(
            "insert into jobs (id, name, owner, principal, cron, zone, prompt)"
            " values (gen_random_uuid(), 'news', %s, %s, '0 6 * * *', 'UTC', 'go') returning id",
            (owner, acts),
        ).fetchone()
        assert row is not None
        return owner, row[0]

    return worker.database.read(work)


def test_a_block_is_a_part_of_what_is_left_and_at_least_the_call() -> None:
    cap = Cap("team", Decimal(100), Decimal(40), Decimal(10))
    assert budget.block(cap, Decimal("0.02")) == Decimal("0.50")
    assert budget.block(cap, Decimal(20)) == 20
    assert budget.block(cap, Decimal(50)) == 50
    assert budget.block(cap, Decimal("50.01")) is None
    assert budget.block(Cap("team", Decimal(0), Decimal(0), Decimal(0)), Decimal("0.01")) is None


@pytest.mark.parametrize(("scope", "period"), [("team", "month"), ("person", "day"), ("team", "ever")])
def test_what_a_turn_spends_is_booked_in_the_window_and_the_rest_of_its_block_comes_back(
    small: Ground, provider: Rehearsal, scope: str, period: str
) -> None:
    _cap(small, scope, "team" if scope == "team" else small.person, period, "10")
    turn = _asked(small, provider, LOOK, {"text": "two"})
    small.look()
    row, window = small.view(turn), _window(small, scope)
    assert row["status"] == "done"
    assert (window["spent_usd"], window["reserved_usd"]) == (row["spent_usd"], 0)
    assert small.rows("select * from draws") == []


def test_a_job_and_whose_it_is_pay_for_its_runs(small: Ground, provider: Rehearsal) -> None:
    """Also below it: a child is its job's."""
    owner, job = _job(small)
    for scope, subject in (("job", job), ("person", owner)):
        _cap(small, scope, subject, "day", "10")
    turn = _asked(small, provider, {"tools": [delegate("one")]}, {"text": "all in"}, turn_class=TurnClass.JOB)
    small.execute("update turns set job = %s where id = %s", job, turn)
    provider.script([{"text": "found"}])
    small.look()
    row = small.view(turn)
    assert row["children_usd"] > 0
    windows = small.rows("select scope, id, spent_usd, reserved_usd from budgets order by scope")
    spent = row["spent_usd"] + row["children_usd"]
    assert windows == [
        {"scope": "job", "id": str(job), "spent_usd": spent, "reserved_usd": 0},
        {"scope": "person", "id": str(owner), "spent_usd": spent, "reserved_usd": 0},
    ]


def test_a_cap_for_everybody_gives_way_to_ones_own(small: Ground, provider: Rehearsal) -> None:
    _cap(small, "person", "*", "day", "0.0001")
    _cap(small, "person", small.person, "day", "10")
    turn = _asked(small, provider, {"text": "one"})
    small.look()
    assert small.view(turn)["status"] == "done"
    assert _window(small, "person")["id"] == str(small.person)


def test_a_cap_that_is_set_in_the_middle_of_a_window_counts_what_was_spent_in_it(
    small: Ground, provider: Rehearsal
) -> None:
    before = _asked(small, provider, {"text": "one"})
    small.look()
    spent = small.view(before)["spent_usd"]
    assert spent > 0
    _cap(small, "team", "team", "month", "10")
    after = _asked(small, provider, {"text": "one"})
    small.look()
    assert _window(small, "team")["spent_usd"] == spent + small.view(after)["spent_usd"]


def test_without_room_a_turn_waits_and_goes_on_when_the_cap_is_raised(small: Ground, provider: Rehearsal) -> None:
    _cap(small, "team", "team", "month", "0.0001")
    turn = _asked(small, provider, {"text": "at last"})
    small.look()
    row = small.view(turn)
    assert (row["status"], row["parked_on"], row["short_of"], row["spent_usd"]) == ("parked", "money", "budget", 0)
    (parked,) = [event for event in small.events(turn) if event.kind == "turn.parked"]
    assert "the team's cap of $0.0001 of 20" in parked.data["why"]
    assert "nightshift budgets set team team month 0.0" in parked.data["why"]
    with room(small) as sweeper:
        settle(sweeper)
        assert small.view(turn)["status"] == "parked"
        _cap(small, "team", "team", "month", str(row["short_usd"]))
        assert wake(sweeper) == 1
    small.look()
    row = small.view(turn)
    assert (row["status"], row["answer"], row["short_of"]) == ("done", "at last", None)


def _one_call_a_day(worker: Ground, provider: Rehearsal) -> UUID:
    """A turn that has made a call, and waits for the next day: the cap is what its first call may have cost."""
    _cap(worker, "person", "*", "day", "0.0001")
    turn = _asked(worker, provider, *[LOOK] * 9, {"text": "over"})
    worker.look()
    _cap(worker, "person", "*", "day", str(worker.view(turn)["short_usd"]))
    with room(worker) as sweeper:
        assert wake(sweeper) == 1
    worker.look()
    return turn


def test_a_new_day_makes_room_by_itself(small: Ground, provider: Rehearsal) -> None:
    first = _one_call_a_day(small, provider)
    row = small.view(first)
    assert (row["parked_on"], row["short_of"]) == ("money", "budget")
    spent = row["spent_usd"]
    assert 0 < spent <= small.one("select cap_usd from budget_caps")["cap_usd"]
    with room(small) as sweeper:
        assert wake(sweeper) == 0
        until_midnight = small.one(
            "select extract(epoch from budget_until('day', 'UTC', clock_now()) - clock_now())::float8 as s"
        )["s"]
        advance(small, until_midnight + 1)
        assert wake(sweeper) == 1
    _cap(small, "person", "*", "day", "10")
    small.look()
    windows = small.rows('select spent_usd, reserved_usd from budgets order by "window"')
    assert windows[0] == {"spent_usd": spent, "reserved_usd": 0}  # what comes after midnight is the next day's
    assert windows[1]["spent_usd"] > 0
    assert sum(w["spent_usd"] for w in windows) == small.view(first)["spent_usd"]


def test_where_clocks_go_back_at_the_end_of_a_window_its_last_hour_is_waited_for(
    small: Ground, provider: Rehearsal
) -> None:
    """That day has 25 hours in the team's zone: a day cap that made room after 24 would be spent twice in it."""
    small.execute("update budget_rules set zone = 'Europe/Berlin', version = version + 1")
    to_midnight = "select extract(epoch from timestamptz '2027-10-30 22:30Z' - clock_now())::float8 as s"
    advance(small, small.one(to_midnight)["s"])
    turn = _one_call_a_day(small, provider)
    assert (small.view(turn)["short_of"], _window(small, "person")["window"]) == ("budget", "2027-10-31")
    with room(small) as sweeper:
        advance(small, 24 * 3600)  # 23:30 at home, and a day has passed
        assert wake(sweeper) == 0
        advance(small, 1800 + 1)
        assert wake(sweeper) == 1
    small.look()
    windows = small.rows('select "window" from budgets order by "window"')
    assert [row["window"] for row in windows] == ["2027-10-31", "2027-11-01"]


def test_where_clocks_go_forward_a_turn_over_midnight_draws_from_the_new_day(
    small: Ground, provider: Rehearsal
) -> None:
    """That day has 23 hours: a block that was good for 24 would let the old day pay for the new one's first hour."""
    small.execute("update budget_rules set zone = 'Europe/Berlin', version = version + 1")
    advance(
        small, small.one("select extract(epoch from timestamptz '2028-03-26 21:30Z' - clock_now())::float8 as s")["s"]
    )
    _cap(small, "person", small.person, "day", "10")
    turn = _asked(small, provider, LOOK, {"text": "two"}, deadline_s=7_200)
    runner = Runner(small, frozenset({Point.AFTER_CALL}))
    advance(small, 2_400)  # from 23:30 to 00:10 of the next day, while the first call is out
    assert runner.go() == Point.AFTER_CALL
    runner.let_go()
    assert runner.arrive() == "over"
    first, second = small.rows("select cost_usd from calls where turn = %s order by seq", turn)
    assert small.rows('select "window", spent_usd, reserved_usd from budgets order by "window"') == [
        {"window": "2028-03-26", "spent_usd": first["cost_usd"], "reserved_usd": 0},
        {"window": "2028-03-27", "spent_usd": second["cost_usd"], "reserved_usd": 0},
    ]


def test_a_call_that_is_made_again_is_booked_as_often_as_it_was_billed(small: Ground, provider: Rehearsal) -> None:
    """A stream that breaks off is billed, and so is the one that follows: two calls, each with its own usage."""
    _cap(small, "team", "team", "month", "10")
    broken = {"text": "word " * 60, "fault": {"kind": "cut", "after_chunks": 2}}
    turn = _asked(small, provider, broken, {"text": "whole"})
    small.look()
    calls = small.rows("select status, cost_usd, input_tokens from calls where turn = %s order by seq", turn)
    row, billed = small.view(turn), provider.ledger()
    assert [call["status"] for call in calls] == ["failed", "settled"]
    assert len(billed) == 2
    spent = sum(call["cost_usd"] for call in calls)
    assert row["status"] == "done"
    assert _window(small, "team")["spent_usd"] == row["spent_usd"] == spent
    assert float(spent) >= sum(call["usd"] or 0 for call in billed)
    assert float(calls[1]["cost_usd"]) == pytest.approx(billed[1]["usd"])


def test_what_one_turn_gives_back_lets_another_one_go_on(small: Ground, provider: Rehearsal) -> None:
    """The first one's block takes all that is left; it parks for a person, and the sweep frees what it did not use."""
    _cap(small, "team", "team", "month", "10")
    held = _asked(small, provider, {"tools": [tool("ask_person", question="which?")]}, {"text": "so"})
    small.look()
    assert small.view(held)["parked_on"] == "clarify"
    assert small.rows("select * from draws") == []  # its holder gave back when it parked
    small.execute('insert into draws select %s, scope, id, "window", 9, 0 from budgets', held)
    small.execute("update budgets set reserved_usd = 10 - spent_usd")
    turn = _asked(small, provider, {"text": "one"})
    small.look()
    assert small.view(turn)["short_of"] == "budget"
    with room(small) as sweeper:
        settle(sweeper)
        assert sweeper.counters["wake_missed"] == 0
    small.look()
    assert small.view(turn)["status"] == "done"


@pytest.mark.parametrize("usd", ["0", "0.0001"])
def test_a_cap_that_is_lowered_below_what_is_spent_stops_the_next_call_of_a_turn_that_runs(
    small: Ground, provider: Rehearsal, usd: str
) -> None:
    """Though it has drawn for more: what it drew under the old cap is given back."""
    _cap(small, "team", "team", "month", "10")
    session = small.session()
    provider.script([LOOK, {"text": "two"}], session=str(session))
    turn = small.turn(session, "go")
    runner = Runner(small, frozenset({Point.AFTER_CALL}))
    assert _window(small, "team")["reserved_usd"] == Decimal("0.1")
    _cap(small, "team", "team", "month", usd)
    runner.let_go()
    assert runner.arrive() == "over"
    row, window = small.view(turn), _window(small, "team")
    assert (row["parked_on"], row["short_of"], row["steps"]) == ("money", "budget", 1)
    assert (window["spent_usd"], window["reserved_usd"]) == (row["spent_usd"], 0)
    assert len(provider.ledger(session)) == 1


def test_a_first_cap_that_is_set_while_a_turn_runs_holds_from_its_next_call_on(
    small: Ground, provider: Rehearsal
) -> None:
    session = small.session()
    provider.script([LOOK, {"text": "two"}], session=str(session))
    turn = small.turn(session, "go")
    runner = Runner(small, frozenset({Point.AFTER_CALL}))
    _cap(small, "person", "*", "day", "0.0001")
    runner.let_go()
    assert runner.arrive() == "over"
    row = small.view(turn)
    assert (row["parked_on"], row["short_of"], row["steps"]) == ("money", "budget", 1)


def test_with_a_shared_cap_an_unknown_price_is_refused(
    database_url: str, redis_url: str, provider: Rehearsal, tmp_path: Path
) -> None:
    with ground(database_url, redis_url, provider.url, tmp_path) as worker:
        _cap(worker, "team", "team", "month", "10")
        turn = worker.turn(worker.session(model="rehearsal-1"), "go")
        worker.look()
        row = worker.view(turn)
    assert (row["status"], row["error_code"]) == ("failed", "price_unknown")
    assert "the team has a cap of $10" in row["error_text"]


def test_a_price_that_the_team_wrote_down_lets_a_model_that_no_list_knows_run_under_a_cap(
    database_url: str, redis_url: str, provider: Rehearsal, tmp_path: Path
) -> None:
    each = OwnPrice.model_validate(dict.fromkeys(OwnPrice.model_fields, 1))
    prices = {"anthropic": {"claude-mythos-5": each}}
    with ground(database_url, redis_url, provider.url, tmp_path, prices=prices) as worker:
        _cap(worker, "team", "team", "month", "10")
        turn = worker.turn(worker.session(model="claude-mythos-5"), "go")
        worker.look()
        row = worker.view(turn)
        (call,) = worker.rows("select * from calls where turn = %s", turn)
        window = _window(worker, "team")
    buckets = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_5m_tokens", "cache_write_1h_tokens")
    assert (row["status"], call["cost_usd"]) == ("done", Decimal(sum(call[name] for name in buckets)) / 1_000_000)
    assert call["rate_source"].startswith("settings anthropic ")
    assert window["spent_usd"] == row["spent_usd"] == call["cost_usd"] > 0


def test_what_a_dead_worker_had_drawn_comes_back_less_what_is_assumed_spent(small: Ground, provider: Rehearsal) -> None:
    _cap(small, "team", "team", "month", "10")
    turn = _asked(small, provider, LOOK, {"text": "two"})
    runner = Runner(small, frozenset({Point.RESERVED}))
    assert _window(small, "team")["reserved_usd"] == Decimal("0.1")
    runner.freeze()
    with room(small) as sweeper:
        take_orphans(sweeper)
        assert give_back(sweeper) == 1
    window, row = _window(small, "team"), small.view(turn)
    assert (window["spent_usd"], window["reserved_usd"]) == (row["spent_usd"], 0)
    assert row["spent_usd"] > 0  # the call that was out, as its reservation
    runner.crash()
    assert _window(small, "team")["spent_usd"] == row["spent_usd"]  # the late worker books nothing


def test_crowds_of_turns_never_spend_past_a_shared_cap(small: Ground, provider: Rehearsal) -> None:
    cap = Decimal("0.15")
    _cap(small, "team", "team", "month", str(cap))
    provider.script([{"tools": [tool("list_files")], "text": "word " * 200}] * 30)
    turns = [small.turn(small.session(), "go", max_steps=12) for _ in range(12)]
    with working(small, slots=6), sweeping(small, 0.2):
        until(
            lambda: not small.rows(
                "select 1 from turns where status in ('running', 'queued')"
            ) and not small.rows("select 1 from draws"), 60, "everybody waits for money",
        )  # fmt: skip
    window = _window(small, "team")
    spent = sum(small.view(turn)["spent_usd"] for turn in turns)
    assert window["spent_usd"] == spent
    assert cap / 2 < spent <= cap
    assert float(spent) == pytest.approx(sum(call["usd"] for call in provider.ledger()))


def test_people_are_told_at_50_80_and_100_per_cent_once(small: Ground, provider: Rehearsal) -> None:
    _cap(small, "team", "team", "month", "10")
    turn = _asked(small, provider, {"text": "one"})
    small.look()
    assert small.view(turn)["status"] == "done"
    told: list[str] = []
    with room(small) as sweeper:
        for spent in ("4.99", "5", "5.5", "8.1", "10", "10.5"):
            small.execute("update budgets set spent_usd = %s", Decimal(spent))
            tell(sweeper)
            tell(sweeper)
            lines = small.rows("select action, detail from audit where action like 'budget.%%' order by id")
            told.append(f"{spent}: {[line['action'] for line in lines]}")
    assert told == [
        "4.99: []", "5: ['budget.50']", "5.5: ['budget.50']", "8.1: ['budget.50', 'budget.80']",
        "10: ['budget.50', 'budget.80', 'budget.100']", "10.5: ['budget.50', 'budget.80', 'budget.100']",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("at", "window", "until_"),
    [
        ("2026-03-29 00:30Z", "2026-03-29", "2026-03-29 22:00Z"),  # 23 hours: clocks go forward in the night
        ("2026-10-25 00:30Z", "2026-10-25", "2026-10-25 23:00Z"),  # 25 hours
        ("2026-10-24 22:30Z", "2026-10-25", "2026-10-25 23:00Z"),
        ("2026-12-31 23:30Z", "2027-01-01", "2027-01-01 23:00Z"),
    ],
)
def test_a_day_ends_at_midnight_of_the_teams_zone_also_when_clocks_change(
    small: Ground, at: str, window: str, until_: str
) -> None:
    row = small.one(
        "select budget_window('day', z, %s::timestamptz) as w,"
        " budget_until('day', z, %s::timestamptz) = %s::timestamptz as ends"
        " from (values ('Europe/Berlin')) as x(z)", at, at, until_,
    )  # fmt: skip
    assert row == {"w": window, "ends": True}

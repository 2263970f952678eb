"""Money of a tree: what is promised to children is reserved above them, what they spend is counted there, no cap is
passed, whoever runs beside whom."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tests.ground import Ground, Rehearsal, ground
from workers import budget
from workers.budget import Cap


def _delegate(*goals: str, **more: Any) -> dict[str, Any]:
    return {"name": "delegate_task", "input": {"tasks": [{"goal": goal} for goal in goals], **more}}


def _spent(worker: Ground, turn: UUID) -> Decimal:
    """By the calls of the whole tree, which is what the provider bills."""
    row = worker.one(
        "with recursive tree(id) as (select %s::uuid"
        "   union all select c.id from turns c join tree on c.parent = tree.id)"
        " select coalesce(sum(coalesce(k.cost_usd, k.reserved_usd)), 0) as usd"
        " from calls k join tree on k.turn = tree.id",
        turn,
    )
    return row["usd"]


def test_a_child_gets_an_equal_part_of_half_of_the_least_remainder() -> None:
    turn = Cap("turn", Decimal("1.00"), Decimal("0.10"), Decimal("0.10"))
    session = Cap("session", Decimal("0.50"), Decimal("0.10"), Decimal(0))
    call = Cap("call", Decimal("0.01"), Decimal(0), Decimal(0))
    assert budget.for_each_child((call, turn, session), 4) == Decimal("0.05")
    assert budget.for_each_child((call, turn), 3) == Decimal("0.133333")
    assert budget.for_each_child((call,), 3) is None
    assert budget.for_each_child((Cap("turn", Decimal(1), Decimal(2), Decimal(0)),), 3) == 0


def test_the_sum_of_the_parts_is_never_more_than_was_left() -> None:
    for cents in range(1, 40):
        for children in range(1, 21):
            left = Decimal(cents) / 100
            part = budget.for_each_child((Cap("turn", left, Decimal(0), Decimal(0)),), children)
            assert part is not None
            assert part * children <= left


def test_what_children_spend_counts_in_the_parents_cap_and_what_they_left_is_free_again(
    worker: Ground, provider: Rehearsal
) -> None:
    session = worker.session()
    provider.script([{"tools": [_delegate("one", "two")]}, {"text": "all in"}], session=str(session))
    provider.script([{"text": "found"}])
    turn = worker.turn(session, "find out", cap_usd=Decimal(5))
    worker.look()
    row = worker.view(turn)
    assert (row["status"], row["children_promised_usd"]) == ("done", 0)
    children = worker.rows("select spent_usd, cap_usd from turns where parent = %s", turn)
    assert row["children_usd"] == sum(child["spent_usd"] for child in children) > 0
    sums = worker.one(
        "select sum(input_tokens) as input, sum(output_tokens) as output, sum(cache_read_tokens) as cache_read,"
        " sum(cache_write_5m_tokens) as cache_write_5m, sum(cache_write_1h_tokens) as cache_write_1h from calls"
    )
    assert sums == {kind: sum(call[kind] for call in provider.ledger()) for kind in sums}
    assert float(_spent(worker, turn)) == pytest.approx(sum(call["usd"] for call in provider.ledger()))
    assert all(Decimal(1) < child["cap_usd"] < Decimal("1.25") for child in children)


@pytest.fixture
def small(database_url: str, redis_url: str, provider: Rehearsal, tmp_path: Path) -> Any:
    """Calls whose worst case is a few cents, so that caps of cents bite; and nothing but money stops who repeats."""
    provider.reset()
    more: dict[str, Any] = {"max_output_tokens": 500, "spawn_depth": 2, "repeat_stale": 0}
    with ground(database_url, redis_url, provider.url, tmp_path, **more) as made:
        yield made


@pytest.mark.parametrize("scope", ["turn", "session"])
@pytest.mark.parametrize("cents", [3, 6, 12, 25, 60])
def test_no_cap_is_passed_by_foreground_and_background_children_side_by_side(
    small: Ground, provider: Rehearsal, scope: str, cents: int
) -> None:
    """Each child and the parent ask for as much as they can, until their caps stop them; the bill of the tree stays
    below the one cap that a person set, whether it is the turn's or the session's."""
    cap = Decimal(cents) / 100
    session = small.session(**({"cap_usd": cap} if scope == "session" else {}))
    many = {"name": "list_files", "input": {"path": "."}}
    provider.script(
        [
            {"tools": [_delegate("b1", "b2", "b3", background=True)]},
            {"tools": [_delegate("f1", "f2")]},
            *[{"tools": [many], "text": "word " * 300}] * 60,
        ],
        session=str(session),
    )
    provider.script([{"tools": [many], "text": "word " * 300}] * 60)
    turn = small.turn(session, "find out", max_steps=60, **({"cap_usd": cap} if scope == "turn" else {}))
    promised: list[Decimal] = []
    for _ in range(4):
        small.look(2)
        promised.append(small.view(turn)["children_promised_usd"])
    left = small.rows("select parent, parked_on from turns where status in ('queued', 'running', 'parked')")
    assert left == [{"parent": None, "parked_on": "money"}]  # a person may raise it; nobody else waits
    total = _spent(small, turn)
    assert total <= cap
    row = small.view(turn)
    assert row["children_promised_usd"] == 0
    assert row["spent_usd"] + row["children_usd"] == total
    if cents >= 25:  # there was enough to hand on, so that this is no test of children that never ran
        assert row["children_usd"] > 0
        assert total > cap / 3


def test_the_second_delegation_shares_what_the_first_left(small: Ground, provider: Rehearsal) -> None:
    """While the first children's promises stand, only the rest is shared, though nothing of them is spent yet."""
    session = small.session()
    provider.script(
        [{"tools": [_delegate("b", background=True), _delegate("f")]}, {"text": "all in"}], session=str(session)
    )
    provider.script([{"text": "found"}])
    turn = small.turn(session, "find out", cap_usd=Decimal(2))
    small.look(1)
    caps = small.rows("select background, cap_usd from turns where parent = %s order by background desc", turn)
    assert [row["background"] for row in caps] == [True, False]
    first, second = (row["cap_usd"] for row in caps)
    assert Decimal("0.9") < first < Decimal(1)
    assert second == (first / 2).quantize(Decimal("0.000001")) or abs(second - first / 2) < Decimal("0.00001")


def test_with_nothing_left_to_hand_on_the_call_is_refused(small: Ground, provider: Rehearsal) -> None:
    """Each delegation takes half of what the ones before it left."""
    session = small.session()
    tools = [_delegate("b", background=True)] * 12 + [_delegate(*["many"] * 20, background=True)]
    provider.script([{"tools": tools}, {"text": "all in"}], session=str(session))
    provider.script([{"text": "found"}])
    turn = small.turn(session, "find out", cap_usd=Decimal("0.05"))
    small.look(1)
    runs = small.rows("select status, result from tool_runs where turn = %s order by ordinal", turn)
    assert (runs[0]["status"], runs[-1]["status"]) == ("done", "failed")
    assert "money that is left is not enough" in runs[-1]["result"]
    assert _spent(small, turn) <= Decimal("0.05")


def test_a_child_may_not_delegate_in_the_background(small: Ground, provider: Rehearsal) -> None:
    """Nobody would read it: a child's session has no reader once its turn is over."""
    session = small.session()
    provider.script([{"tools": [_delegate("one")]}, {"text": "all in"}], session=str(session))
    provider.script([{"tools": [_delegate("deeper", background=True)]}, {"text": "found"}])
    turn = small.turn(session, "find out")
    small.look(1)
    run = small.one(
        "select r.status, r.result from tool_runs r join turns c on c.id = r.turn where c.parent = %s", turn
    )
    assert run["status"] == "failed"
    assert "background" in run["result"]

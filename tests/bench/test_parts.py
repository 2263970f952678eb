"""The benchmarks, as small as they can be: that each part still runs on the product as it is. No figure is judged."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

import pytest

from tests.bench import claims, compaction, fallback, floor, limits, memory, providers, run, search
from tests.bench.day import books, drive, plan, report
from tests.bench.day import run as day
from tests.bench.house import LIMIT, House
from tests.chaos.rig import stack

SMALL: Mapping[str, tuple[Any, Mapping[str, object]]] = {
    "claims": (claims, {"TRIES": 6, "MANY": claims.FEW}),
    "compaction": (compaction, {"ARCHIVED": 30, "LONG": 30, "LIVE": 10, "SESSIONS": 1, "ROUNDS": 1}),
    "floor": (floor, {}),
    "limits": (limits, {"PER_MINUTE": 600, "MINUTES": 0.02, "SESSIONS": 8, "SLOTS": 4}),
    "memory": (memory, {"TURNS": 12, "FROM": 4, "EACH": 3, "SLOTS": 2, "CLIENTS": 3}),
    "providers": (providers, {"ROUNDS": 3, "EVENTS": 20, "STREAMS": 2, "SECONDS": 0.2}),
    "search": (search, {"SESSIONS": 100, "EACH": 1, "ROUNDS": 1}),
}
"""What one round of a part takes seconds for. The others are run by hand: they are made of the same parts."""


@pytest.fixture(scope="module")
def house() -> Generator[House]:
    settings = {"PRINCIPAL_LIMIT": LIMIT, "LOG_LEVEL": "warning", "STRICT": 0, "TEST_CLOCK": 1}
    with stack(workers=0, settings=settings) as rig:
        yield House(rig)


@pytest.mark.parametrize("name", list(SMALL))
def test_a_part_gives_its_figures(house: House, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    part, constants = SMALL[name]
    for constant, value in constants.items():
        monkeypatch.setattr(part, constant, value)
    house.reset()
    found = run.BENCHES[name](house)
    assert found
    assert all(figure.name and figure.unit is not None for figure in found)


def test_an_outage_of_two_turns_is_played_and_judged(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fallback, "SESSIONS", 2)
    monkeypatch.setattr(fallback, "MINUTES", 2 * fallback.EVERY)
    house.reset()
    figures = fallback.drive(house)
    assert len(figures) == 4 * len(fallback.OUTAGES)
    assert [figure.name for figure in figures if not figure.met] == []


def test_a_day_of_three_turns_is_played_and_judged(house: House) -> None:
    maker = plan.Maker("day", 1)
    told = maker.turn(0, 1)
    maker.plant(told, "result", 1)
    (fact,) = maker.plan.facts
    maker.turn(60, 1)
    maker.ask(120, fact)
    window = 200_000
    playing = drive.Run(maker.plan, day.MODEL)
    house.reset()
    before = books.ours(house.rig.http)
    with drive.staged(house, {day.MODEL: window}) as stage:
        stage.play([playing])
        judged = report.judge(stage.book, playing, window)
        calls, differ = stage.replays(playing)
        after, billed = books.ours(house.rig.http), house.rig.provider.ledger()
        assert books.differ(before.total, after.total, books.theirs(billed)) == []
        known = {row["request_id"]: row["purpose"] for row in house.rig.rows("select request_id, purpose from calls")}
        apart = books.apart(before, after, billed, known)
        assert [one.wrong for one in apart] == [[] for _ in apart]
        assert {one.purpose: one.here["calls"] for one in apart if one.here["calls"]}["main"] == sum(
            judged.calls.values()
        )
        # What is no bill of ours is told.
        stranger = dict(billed[0], request_id="req_stranger", usd=0.5)
        assert [one.purpose for one in books.apart(before, after, [*billed, stranger], known) if one.wrong] == [
            "nobody"
        ]
    assert (calls, differ) == (sum(judged.calls.values()), [])
    assert (judged.broken, judged.failed, judged.cut) == ([], [], 0)
    assert [answer.right for answer in judged.answers] == [True]
    assert judged.paid > 0
    assert {figure.met for figure in report.figures([judged]) if figure.name.endswith("lost to all ways")} == {True}


def test_what_is_asked_of_the_day_becomes_phases() -> None:
    asked = day.arguments(["--only", "day", "night", "models", "--windows", "200000", "--seeds", "2"])
    found = day.phases(asked.only, asked.windows, range(1, asked.seeds + 1))
    assert [phase.title for phase in found] == ["day, 200 k", "night, 200 k"]
    assert [len(phase.models) for phase in found] == [3, 1]
    every = day.phases(day.PARTS, day.WINDOWS, (1,))
    assert {phase.name for phase in every} == {*plan.GENERATORS, *day.APART}
    with pytest.raises(SystemExit):
        day.arguments(["--only", "nothing"])


def test_a_name_that_is_no_benchmark_is_told_those_that_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run.main(["nothing"])
    told = capsys.readouterr().err
    assert all(name in told for name in run.BENCHES)

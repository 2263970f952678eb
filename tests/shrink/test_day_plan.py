"""The benchmark's conversations: made from a seed alone, of the shape that the figures are told for."""

from __future__ import annotations

from functools import cache

import pytest

from tests.bench.day import plan


@cache
def _plan(name: str) -> plan.Plan:
    return plan.GENERATORS[name](3)


@pytest.fixture(params=list(plan.GENERATORS))
def made(request: pytest.FixtureRequest) -> plan.Plan:
    return _plan(request.param)


def test_a_seed_makes_one_conversation_and_another_seed_another() -> None:
    one, again, other = (plan.Maker("any", seed) for seed in (3, 3, 4))
    for maker in (one, again, other):
        maker.plant(maker.turn(0, 6), "result", 1)
    assert (again.plan.turns, again.plan.files, again.plan.facts) == (one.plan.turns, one.plan.files, one.plan.facts)
    assert other.plan.turns[0].text != one.plan.turns[0].text


def test_time_goes_on_and_nothing_is_asked_that_was_not_said_before(made: plan.Plan) -> None:
    times = [turn.at_s for turn in made.turns]
    assert times == sorted(times)
    said = ""
    asked = 0
    for turn in made.turns:
        if turn.asks is not None:
            asked += 1
            assert turn.text == f"Question: what is {turn.asks.subject}?"
            assert turn.asks.value in said
            continue
        said += turn.text + turn.answer
        for step in turn.steps:
            said += "".join(made.files.get(str(wish.input.get("path")), "") for wish in step.wishes)
    assert asked >= 5


def test_a_fact_stands_once_and_where_it_is_said_to_be(made: plan.Plan) -> None:
    for fact in made.facts:
        in_files = [path for path, text in made.files.items() if fact.value in text]
        in_words = [turn for turn in made.turns if fact.value in turn.text]
        in_answers = [turn for turn in made.turns if fact.value in turn.answer]
        assert in_files == ([] if fact.path is None else [fact.path])
        assert (len(in_words), len(in_answers)) == (fact.where == "person", fact.where == "restated")


def test_results_are_of_all_sizes_and_kinds_and_some_come_twice(made: plan.Plan) -> None:
    sizes = sorted(len(text) for text in made.files.values())
    assert sizes[0] < 600
    assert 20_000 < sizes[-1] < 40_000
    assert {path.partition("/")[0] for path in made.files} == {"notes", "logs", "data", "src", "zh"}
    reads = [wish.input["path"] for turn in made.turns for step in turn.steps for wish in step.wishes
             if wish.tool == "read_file"]  # fmt: skip
    assert len(reads) > len(set(reads))


def test_the_day_has_the_shape_of_a_day() -> None:
    day = _plan("day")
    gaps = [later.at_s - turn.at_s for turn, later in zip(day.turns, day.turns[1:], strict=False)]
    assert 105 <= len(day.turns) <= 120
    assert 340 <= day.calls <= 500
    assert [gap for gap in gaps if gap > plan.HOUR] == [max(gaps)] == [pytest.approx(2 * plan.HOUR)]
    assert sum(turn.scaffold is not None for turn in day.turns) == 12
    scaffolds = {turn.text[: turn.scaffold] for turn in day.turns if turn.scaffold}
    assert len(scaffolds) == 1

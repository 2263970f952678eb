"""A turn that goes round in a circle is told so, then has no more tools and is asked to account for it."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from shared.values import OnBusy
from tests.ground import Ground, Rehearsal, ground
from tests.loop.dying import die, take_away
from workers import circling
from workers.circling import Circle, Found, Limits, Seen, Stop, look
from workers.pause import Point

LIMITS = Limits(3, 12)
AGAIN = "the same call failed the same way before; change something, or say why it cannot be done"
STALE = "4 calls in a row brought nothing that this turn had not seen; go by what is known"
ENDED = "12 calls in a row brought nothing new; there is no more tool use in this turn"
OVER = "the same call failed the same way 3 times; there is no more tool use in this turn"


def bad(asked: str = "a", came: str = "no") -> Seen:
    return Seen(0, asked, came, failed=True, acted=False)


def good(asked: str = "a", came: str = "yes", *, acted: bool = False) -> Seen:
    return Seen(0, asked, came, failed=False, acted=acted)


def steps(*batches: list[Seen]) -> list[Seen]:
    """Each batch of calls as one step."""
    return [replace(one, step=at) for at, batch in enumerate(batches) for one in batch]


@pytest.mark.parametrize(
    ("history", "new", "found"),
    [
        pytest.param([], bad(), Found(), id="a-first-failure"),
        pytest.param([bad()], bad(), Found(AGAIN), id="the-second-time"),
        pytest.param([bad(), good("b"), bad()], bad(), Found(OVER, Stop.FAILING), id="the-third-time"),
        pytest.param([bad(), bad("b")], bad("a", "another no"), Found(), id="another-failure"),
        pytest.param([bad(), bad()], bad("b"), Found(), id="another-call"),
        pytest.param([bad(), bad(), good("b", acted=True)], bad(), Found(), id="something-was-changed"),
        pytest.param([bad(), good("a")], bad(), Found(AGAIN), id="it-worked-in-between"),
        pytest.param([good()] * 3, good(), Found(), id="three-times-the-same-answer"),
        pytest.param(
            [good()] * 4, good(), Found(STALE),
            id="four-times-the-same-answer",
        ),
        pytest.param([good(), good("b")] * 2, good("c"), Found(), id="something-new"),
        pytest.param([good(came=str(at)) for at in range(20)], good(came="20"), Found(), id="each-answer-another"),
        pytest.param([good()] * 8 + [bad("b")], good(), Found(), id="a-failure-is-news"),
        pytest.param(
            [good(), good("b")] * 6 + [good()], good("b"),
            Found(ENDED, Stop.STALE),
            id="twelve-of-two",
        ),
    ],
)  # fmt: skip
def test_what_is_said_of_a_run_after_those_before_it(history: list[Seen], new: Seen, found: Found) -> None:
    *before, last = steps(*[[one] for one in [*history, new]])
    assert look(before, last, LIMITS) == found


MANY = [good(str(at)) for at in range(20)]


@pytest.mark.parametrize(
    ("batches", "found"),
    [
        pytest.param([[bad()] * 12], Found(), id="one-failure-asked-for-twelve-times-at-once"),
        pytest.param([[bad()] * 3, [bad()] * 3], Found(AGAIN), id="the-second-step"),
        pytest.param([[bad()] * 3, [bad()], [bad()] * 2], Found(OVER, Stop.FAILING), id="the-third-step"),
        pytest.param([[good()] * 20], Found(), id="one-answer-asked-for-twenty-times-at-once"),
        pytest.param([[good()] * 12, [good()] * 12], Found(), id="and-once-more"),
        pytest.param([[good()] * 2] * 5, Found(STALE), id="four-steps-that-brought-nothing"),
        pytest.param([[good()] * 5] * 13, Found(ENDED, Stop.STALE), id="twelve-steps"),
        pytest.param([MANY, MANY[:4]], Found(STALE), id="four-known-answers-at-once"),
        pytest.param([MANY, MANY[:12]], Found(STALE.replace("4", "12")), id="twelve-are-told-before-they-end-anything"),
        pytest.param([MANY, MANY[:4], MANY[4:12]], Found(ENDED, Stop.STALE), id="twelve-after-it-was-told"),
    ],
)
def test_calls_of_one_step_do_not_repeat_one_another(batches: list[list[Seen]], found: Found) -> None:
    *before, last = steps(*batches)
    assert look(before, last, LIMITS) == found


def test_a_lower_limit_is_told_of_too() -> None:
    *before, last = steps([good()], [good()], [good()])
    assert look(before, last, Limits(3, 2)) == Found(ENDED.replace("12", "2"), Stop.STALE)
    *before, last = steps(MANY, MANY[:3])
    assert look(before, last, Limits(3, 2)).stop is None


def test_nothing_is_said_where_it_is_turned_off() -> None:
    *before, last = steps(*[[bad()]] * 9)
    assert look(before, last, Limits(0, 12)) == Found()
    *before, last = steps(*[[good()]] * 90)
    assert look(before, last, Limits(3, 0)) == Found()


def test_a_note_does_not_make_the_same_answer_another_one() -> None:
    assert circling.came(circling.noted("no", AGAIN)) == circling.came("no") != circling.came("yes")


def test_what_memory_keeps_is_bounded() -> None:
    circle = Circle()
    for at in range(circling.MOST_SEEN * 2):
        circle.add(good(came=str(at)), LIMITS)
    assert len(circle.history) == circling.MOST_SEEN


# --- in a turn ------------------------------------------------------------------------------------------------------

READ: dict[str, Any] = {"tools": [{"name": "read_file", "input": {"path": "missing"}}]}
LIST: dict[str, Any] = {"tools": [{"name": "list_files", "input": {}}]}


def _turn(worker: Ground, provider: Rehearsal, *replies: dict[str, Any]) -> tuple[UUID, UUID]:
    session = worker.session()
    provider.script([*replies, {"text": "this is what I make of it"}], session=str(session), repeat=True)
    return session, worker.turn(session, "go")


def _results(worker: Ground, turn: UUID) -> list[str]:
    return [
        row["result"]
        for row in worker.rows("select result from tool_runs where turn = %s order by step, ordinal", turn)
    ]


def _last_call(worker: Ground, turn: UUID) -> dict[str, Any]:
    return worker.one("select purpose, tail, step from calls where turn = %s order by seq desc limit 1", turn)


def test_the_third_failure_of_a_kind_ends_the_tool_use_and_asks_for_an_account(
    worker: Ground, provider: Rehearsal
) -> None:
    both = {"tools": [*READ["tools"], {"name": "write_file", "input": {"path": "missing", "content": "x"}}]}
    _, turn = _turn(worker, provider, READ, READ, both)
    worker.look()
    missing = "missing does not exist"
    assert _results(worker, turn) == [
        missing, circling.noted(missing, AGAIN), circling.noted(missing, OVER), circling.NOT_RUN,
    ]  # fmt: skip
    last = _last_call(worker, turn)
    assert last["purpose"] == "final"
    assert "The same call has failed the same way again and again." in last["tail"]
    assert "Begin with an account of it" in last["tail"]
    view = worker.view(turn)
    assert (view["status"], view["answer"]) == ("done", "this is what I make of it")


def test_the_next_holder_comes_to_the_same_end(worker: Ground, provider: Rehearsal) -> None:
    session, turn = _turn(worker, provider, READ, READ, READ)
    assert die(worker, Point.RECORDED, times=3)
    take_away(worker, turn, session)
    worker.look()
    missing = "missing does not exist"
    assert _results(worker, turn) == [missing, circling.noted(missing, AGAIN), circling.noted(missing, OVER)]
    assert _last_call(worker, turn)["purpose"] == "final"


def test_a_person_who_speaks_lets_it_try_again(worker: Ground, provider: Rehearsal) -> None:
    session, turn = _turn(worker, provider, READ, READ, READ)
    assert die(worker, Point.RECORDED, times=3)
    worker.turn(session, "it is there now, look again", on_busy=OnBusy.STEER)
    take_away(worker, turn, session)
    worker.look()
    assert _results(worker, turn)[-1].startswith("missing does not exist")
    assert _last_call(worker, turn)["purpose"] == "main"


@pytest.fixture
def patient(database_url: str, redis_url: str, provider: Rehearsal, tmp_path: Path) -> Generator[Ground]:
    provider.reset()
    with ground(database_url, redis_url, provider.url, tmp_path, repeat_failures=0, repeat_stale=5) as made:
        yield made


def test_a_loop_that_succeeds_without_news_ends_too_and_both_are_settings(patient: Ground, provider: Rehearsal) -> None:
    _, turn = _turn(patient, provider, READ, READ, READ, READ, *[LIST] * 7)
    patient.look()
    said = _results(patient, turn)
    assert said[:4] == ["missing does not exist"] * 4
    assert [circling.MARK in text for text in said[4:]] == [False, False, False, False, True, True]
    assert "Call after call brought nothing that was not known." in _last_call(patient, turn)["tail"]

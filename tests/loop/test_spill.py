"""Results that are too long for the transcript: kept whole, byte for byte, with a preview in their place."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID, uuid4

import pytest

from shared.request import blocks, estimate
from shared.store.statements import every, step
from shared.values import Repeat
from tests.ground import Ground, Rehearsal
from tests.loop.dying import die, take_away
from workers import circling, spill
from workers.outgoing import Finished, kept_params
from workers.pause import Point
from workers.tools import dispatch, registry
from workers.tools.context import Arguments, Store, ToolContext, ToolResult
from workers.tools.tool import Tool

TURN = UUID(int=7)
MODEL = "claude-sonnet-5-5"
OFFSET = re.compile(r"read on with offset=(\d+)\]\Z")
LONG: Mapping[str, str] = {
    "ascii": "".join(f"line {n} of the log\n" for n in range(500_000)),
    "mixed": "".join(f"{n} 数据库 \u202e é \U0001f600\n" for n in range(40_000)),
}
"""Ten megabytes, and one whose characters are of one to four bytes."""


def _result(ordinal: int, text: str, tool: str = "read_file", status: str = "done") -> Finished:
    return Finished(3, ordinal, f"call-{ordinal}", tool, status, text, is_error=False)


def _fitted(results: list[Finished], budget: spill.Budget, *, recall: bool = True) -> tuple[Finished, ...]:
    return spill.fitted(TURN, results, budget, recall=recall)


def test_of_twenty_medium_results_the_largest_are_kept_until_the_rest_fits() -> None:
    sizes = [9_000 + 500 * ((n * 7) % 20) for n in range(20)]
    results = [_result(n, "a word " * (size // 7)) for n, size in enumerate(sizes)]
    budget = spill.budget(MODEL, 1_000_000, 500_000)
    found = _fitted(results, budget)
    kept = [one.ordinal for one in found if one.kept is not None]
    whole = [one.ordinal for one in found if one.kept is None]
    assert [one.ordinal for one in found] == list(range(20))
    assert sum(len(one.text) for one in found) <= budget.chars < sum(sizes)
    assert min(sizes[n] for n in kept) >= max(sizes[n] for n in whole)
    smallest = min(kept, key=lambda n: sizes[n])
    with_it = sum(len(one.text) for one in found) - len(found[smallest].text) + len(results[smallest].text)
    assert with_it > budget.chars  # none was kept for nothing
    assert all(one == results[one.ordinal] for one in found if one.kept is None)


def test_a_page_of_a_kept_text_is_never_kept_again() -> None:
    page = _result(0, "p" * 20_000, "read_artifact")
    others = [_result(n, "o" * 9_000) for n in range(1, 4)]
    found = _fitted([page, *others], spill.budget(MODEL, 200_000, 3_000))
    assert found[0] == page
    assert all(one.kept is not None for one in found[1:])


def test_what_has_a_share_of_its_own_is_kept_last() -> None:
    summary = _result(0, "s" * 30_000, "delegate_task")
    others = [_result(n, "some words " * 900) for n in range(1, 4)]
    size = estimate.estimate_text(summary.text, MODEL)
    found = _fitted([summary, *others], spill.budget(MODEL, 200_000, size + 3_000))
    assert [one.kept is not None for one in found] == [False, True, True, True]
    assert _fitted([summary], spill.budget(MODEL, 200_000, size - 1))[0].kept is not None


def test_where_not_even_previews_fit_they_are_shortened() -> None:
    found = _fitted([_result(n, "some words " * 900) for n in range(8)], spill.budget(MODEL, 200_000, 1_600))
    assert all(one.kept is not None and one.kept.text == "some words " * 900 for one in found)
    assert max(len(one.text) for one in found) < 450


def test_what_nobody_knows_is_told_whole() -> None:
    unknown = _result(0, "it is unknown whether this happened. " * 30, status="unknown")
    assert _fitted([unknown], spill.budget(MODEL, 200_000, 10)) == (unknown,)


@pytest.mark.parametrize("window", [8_000, 32_000, 128_000, 200_000, 1_000_000])
def test_budgets_shrink_with_the_window_and_never_grow(window: int) -> None:
    smaller, budget, larger = (spill.budget(MODEL, size, 1e9) for size in (window // 2, window, window * 2))
    assert smaller.single <= budget.single <= larger.single <= 100_000
    assert smaller.chars <= budget.chars <= larger.chars <= 200_000


def test_a_preview_says_how_much_there_is_and_how_to_read_on() -> None:
    text = "".join(f"line {n}\n" for n in range(9_000))
    found = spill.keep(TURN, _result(4, text), recall=True)
    assert found.kept is not None
    shown, _, last = found.text.rpartition("\n")
    assert text.startswith(shown + "\n")
    assert 750 < len(shown) < 1_500
    assert last == (
        f"[preview: the first {len(shown) + 1:,} of {len(text):,} characters; kept whole as artifact:{found.kept.id}; "
        f"read_artifact artifact:{found.kept.id} offset={len(shown) + 1} reads on]"
    )
    again = spill.keep(TURN, found, recall=False, preview=200)
    assert again.kept == found.kept
    assert "read_artifact" not in again.text
    assert len(again.text) < 400


def _wordy(patch: pytest.MonkeyPatch, name: str, texts: Sequence[str], repeat: Repeat, cap_chars: int) -> None:
    """A tool that gives these texts, one a call, for this test alone."""

    def run(context: ToolContext, arguments: Arguments) -> ToolResult:
        del arguments
        return ToolResult(texts[context.ordinal - 1])

    schema: dict[str, object] = {"type": "object", "properties": {}, "additionalProperties": False}
    patch.setitem(vars(registry)["_ALL"], name, Tool(name, "Says much.", schema, repeat, run, cap_chars))


def _step_of(worker: Ground, provider: Rehearsal, name: str, calls: int) -> tuple[UUID, UUID]:
    session = worker.session()
    wishes: list[dict[str, object]] = [{"name": name, "input": {}} for _ in range(calls)]
    provider.script([{"tools": wishes}, {"text": "done"}], session=str(session))
    turn = worker.turn(session, "say it")
    worker.look()
    assert worker.view(turn)["answer"] == "done"
    return session, turn


def _seen(worker: Ground, turn: UUID) -> list[str]:
    rows = worker.rows("select content, sent from messages where turn = %s and author = 'tool' order by ordinal", turn)
    return [blocks.text_of(blocks.split(row["sent"] or row["content"])[0]) for row in rows]


def _paged(worker: Ground, session: UUID, handle: str) -> str:
    """All of it, as a model reads it page by page, in a turn that has said nothing yet."""
    turn, parts, offset = uuid4(), list[str](), 0
    context = ToolContext(
        session=str(session), turn=str(turn), step=1, ordinal=1, workspace=worker.home, attached=None,
        cancelled=lambda: False, deadline=math.inf, store=Store(worker.database, worker.settings, session, turn, 0),
    )  # fmt: skip
    while True:
        page = dispatch.run_one(context, "read_artifact", json.dumps({"handle": handle, "offset": offset}))
        assert not page.is_error, page.text
        assert page.note is not None
        parts.append(page.text.removesuffix(f"\n[{page.note}]"))
        following = OFFSET.search(page.text)
        if following is None:
            return "".join(parts)
        offset = int(following[1])


@pytest.mark.parametrize("repeat", [Repeat.REPEATABLE, Repeat.ONCE])
@pytest.mark.parametrize("kind", list(LONG))
def test_a_long_result_is_a_preview_to_the_model_and_comes_back_byte_for_byte(
    worker: Ground, provider: Rehearsal, monkeypatch: pytest.MonkeyPatch, kind: str, repeat: Repeat
) -> None:
    text = LONG[kind] if repeat is Repeat.ONCE else LONG[kind][:300_000]
    _wordy(monkeypatch, "wordy", [text], repeat, 50_000_000)
    session, turn = _step_of(worker, provider, "wordy", 1)
    (seen,) = _seen(worker, turn)
    assert len(seen) < 2_000
    assert text.startswith(seen.rpartition("\n")[0])
    row = worker.one("select * from artifacts where session = %s", session)
    assert bytes(row["body"]) == text.encode()
    assert (row["turn"], row["step"], row["ordinal"], row["characters"]) == (turn, 1, 1, len(text))
    assert f"kept whole as artifact:{row['id']};" in seen
    assert worker.one("select result from tool_runs where turn = %s", turn)["result"] == seen
    assert _paged(worker, session, f"artifact:{row['id']}") == text
    (told,) = [event for event in worker.events(turn) if event.kind == "tool.finished"]
    assert told.data["chars"] == len(text)


def test_what_is_over_the_tools_own_bound_is_kept_though_it_is_short(
    worker: Ground, provider: Rehearsal, monkeypatch: pytest.MonkeyPatch
) -> None:
    _wordy(monkeypatch, "wordy", ["a word " * 500, "a word " * 200], Repeat.REPEATABLE, 3_000)
    session, turn = _step_of(worker, provider, "wordy", 2)
    first, second = _seen(worker, turn)
    assert "kept whole as artifact:" in first
    assert second == "a word " * 200
    assert worker.one("select characters from artifacts where session = %s", session)["characters"] == 3_500


def test_twenty_medium_results_of_one_step_leave_the_largest_elsewhere(
    worker: Ground, provider: Rehearsal, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [f"{n:05}" * (2_000 + 100 * ((n * 7) % 20)) for n in range(20)]
    _wordy(monkeypatch, "wordy", texts, Repeat.ONCE, 100_000)
    session, turn = _step_of(worker, provider, "wordy", 20)
    seen = _seen(worker, turn)
    kept = worker.rows("select ordinal, body from artifacts where session = %s order by ordinal", session)
    by_ordinal = {row["ordinal"]: bytes(row["body"]).decode() for row in kept}
    assert 0 < len(kept) < 20
    assert by_ordinal == {ordinal: texts[ordinal - 1] for ordinal in by_ordinal}
    assert [at + 1 for at, text in enumerate(texts) if seen[at] != text] == list(by_ordinal)
    assert min(map(len, by_ordinal.values())) >= max(len(text) for at, text in enumerate(texts) if seen[at] == text)
    assert sum(map(len, seen)) <= spill.STEP


def test_the_next_holder_knows_a_result_again_that_is_kept_whole(
    worker: Ground, provider: Rehearsal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its preview names a handle of its own: by that each one would be news to whoever takes the turn up."""
    _wordy(monkeypatch, "wordy", ["so it is " * 2_000], Repeat.REPEATABLE, 3_000)
    session = worker.session()
    wish: dict[str, Any] = {"tools": [{"name": "wordy", "input": {}}]}
    provider.script([*[wish] * 6, {"text": "over"}], session=str(session))
    turn = worker.turn(session, "say it again")
    assert die(worker, Point.RECORDED, times=5)
    take_away(worker, turn, session)
    worker.look()
    seen = _seen(worker, turn)
    assert all("kept whole as artifact:" in text for text in seen)
    assert [circling.MARK in text for text in seen] == [False] * 4 + [True, False]


def test_a_holder_whose_turn_was_taken_keeps_nothing(worker: Ground, provider: Rehearsal) -> None:
    session = worker.session()
    provider.script([{"tools": [{"name": "todo", "input": {"items": []}}]}, {"text": "done"}], session=str(session))
    turn = worker.turn(session, "note it")
    worker.look()
    fence = worker.one("select fence from sessions where id = %s", session)["fence"]
    kept = spill.keep(turn, Finished(1, 1, "c", "todo", "done", "x" * 9_000, is_error=False), recall=True)
    values: dict[str, object] = {
        "session": session, "turn": turn, "step": 1, "ordinal": 1, "status": "done", "result": kept.text,
        "is_error": False, **kept_params([kept]),
    }  # fmt: skip
    for holds, made in ((fence - 1, 0), (fence, 1), (fence, 1)):  # and sent twice it is there once
        sent = values | {"fence": holds}
        worker.database.read(lambda c, sent=sent: every(c, step.FINISH_RUN_KEEPING, sent))
        count = worker.one("select count(*) as n from artifacts where session = %s", session)
        assert count["n"] == made

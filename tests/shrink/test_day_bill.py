"""The benchmark's own bill: the documentation's examples, its prices, and that it knows nothing of the project."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.bench.day import bill, counterfactual, peer
from tests.bench.day.bill import MODELS, REPLY_HEAD, Bill, Book, Call

MODEL = "claude-sonnet-5-5"
LONG = "the quick brown fox jumps over the lazy dog " * 20
Row = dict[str, Any]


def _marked(block: Row, ttl: str | None) -> Row:
    return block if ttl is None else block | {"cache_control": {"type": "ephemeral", "ttl": ttl}}


def _body(count: int, marks: dict[int, str], model: str = MODEL, text: str = LONG) -> bytes:
    """`count` blocks in one message, marked at these positions (counted from one)."""
    blocks = [_marked({"type": "text", "text": f"block {at}: {text}"}, marks.get(at)) for at in range(1, count + 1)]
    return json.dumps({"model": model, "max_tokens": 9, "messages": [{"role": "user", "content": blocks}]}).encode()


def _bills(*calls: tuple[float, bytes]) -> list[Bill]:
    """Of calls at these seconds, each answered before the next."""
    book = Book()
    laid = [book.read(at, "s", body) for at, (_, body) in enumerate(calls)]
    known = ((one.path, one.marks, at, 7) for one, (at, _) in zip(laid, calls, strict=True))
    return bill.run(book.tree, laid[0].model, known)


def _tokens(count: int) -> int:
    book = Book()
    return book.tree.ends[book.read(0, "s", _body(count, {})).path[-1]]


@pytest.mark.parametrize(("mark", "hit"), [(35, False), (34, True)])
def test_an_entry_at_15_is_missed_by_a_mark_at_35_and_read_by_one_at_34(mark: int, hit: bool) -> None:
    later = _bills((0, _body(15, {15: "5m"})), (1, _body(40, {mark: "5m"})))[1]
    assert later.read == (_tokens(15) if hit else 0)
    assert later.write_5m == _tokens(mark) - later.read
    assert later.input == _tokens(40) + REPLY_HEAD - _tokens(mark)


def test_after_twenty_positions_the_next_earlier_mark_is_looked_at() -> None:
    first = (0.0, _body(5, {5: "5m"}))
    assert _bills(first, (1, _body(60, {60: "5m"})))[1].read == 0
    assert _bills(first, (1, _body(60, {5: "5m", 60: "5m"})))[1].read == _tokens(5)


def test_an_entry_lives_from_the_start_of_the_last_request_that_used_it() -> None:
    body = _body(9, {9: "5m"})
    assert [one.read > 0 for one in _bills((0, body), (299, body), (598, body), (898, body))] == [
        False, True, True, False,
    ]  # fmt: skip
    hour = _body(9, {9: "1h"})
    assert [one.read > 0 for one in _bills((0, hour), (3_599, hour), (7_199, hour))] == [False, True, False]


def test_two_lives_are_billed_by_the_highest_hit_the_last_hour_mark_and_the_last_mark() -> None:
    later = _bills((0, _body(10, {10: "5m"})), (1, _body(40, {10: "5m", 20: "1h", 30: "5m"})))[1]
    assert (later.read, later.write_1h, later.write_5m) == (
        _tokens(10), _tokens(20) - _tokens(10), _tokens(30) - _tokens(20),
    )  # fmt: skip


def test_below_the_minimum_nothing_is_cached() -> None:
    short = _body(2, {2: "5m"}, text="few words")
    assert [(one.read, one.write_5m) for one in _bills((0, short), (1, short))] == [(0, 0), (0, 0)]


def test_what_was_written_is_read_only_once_the_reply_has_begun() -> None:
    book = Book()
    for index, begun in enumerate((5.0, 6.0, 9.0)):
        call = book.read(index, f"s{index}", _body(9, {9: "5m"}))
        call.facts |= {"at": 0.0, "started": (0.0, 1.0, 7.0)[index], "first_byte": begun, "output": 1, "usd": 0.0}
    found = book.bill_all()
    assert [found[index].read > 0 for index in range(3)] == [False, False, True]


def test_the_prices_are_those_of_the_page() -> None:
    """reference/providers.md 1.2, and the day of its section 0: a million of each bucket."""
    each = Bill(1_000_000, 1_000_000, 1_000_000, 1_000_000, 1_000_000)
    assert each.parts(MODELS["claude-opus-5-5"]) == {
        "input": 4, "read": bill.Fraction("0.2"), "write_5m": 5, "write_1h": 8, "output": 20,
    }  # fmt: skip
    assert float(each.usd(MODELS["claude-fable-5-2"])) == pytest.approx(8 + 0.20 + 10 + 16 + 40)
    small, large = Bill(input=100_000), Bill(input=100_001)
    assert float(small.usd(MODELS["claude-haiku-5-5"])) == pytest.approx(0.01)
    assert float(large.usd(MODELS["claude-haiku-5-5"])) == pytest.approx(0.0500005)


def test_it_imports_nothing_of_the_project() -> None:
    tree = ast.parse(Path(bill.__file__).read_text("utf-8"))
    names = {
        one.name.partition(".")[0] for node in ast.walk(tree) if isinstance(node, ast.Import) for one in node.names
    }
    names |= {(node.module or "").partition(".")[0] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert names - set(sys.stdlib_module_names) == {"bpe_openai", "orjson"}


def test_as_a_program_it_agrees_with_a_ledger_and_finds_one_that_is_wrong(tmp_path: Path) -> None:
    capture = tmp_path / "capture"
    capture.mkdir()
    rows: list[Row] = []
    for index in range(2):
        (capture / f"{index:06d}-s.json").write_bytes(_body(30 + index, {30: "5m", 30 + index: "5m"}))
        rows.append({"index": index, "at": index, "started": index, "first_byte": index + 0.5, "output": 3})
    for row, one in zip(rows, _bills((0, _body(30, {30: "5m"})), (1, _body(31, {30: "5m", 31: "5m"}))), strict=True):
        row |= {"cache_read": one.read, "usd": float(Bill(one.input, one.read, one.write_5m, 0, 3).usd(MODELS[MODEL]))}
    ledger = tmp_path / "ledger.json"
    command = [sys.executable, "-I", bill.__file__, str(capture), "--calls", str(ledger)]
    ledger.write_text(json.dumps({"calls": rows}), "utf-8")
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, json.loads(done.stdout)["differ"]) == (0, []), done.stderr

    rows[1]["cache_read"] += 1
    book = bill.read_folder(capture)
    for row in rows:
        book.calls[row["index"]].facts |= row
    assert [one.partition(":")[0] for one in bill.compare(book, book.bill_all())] == ["call 1"]


# --- the conversation as it would have been ---


def _conversation(steps: int, wide: int, *, stub: bool = False, ttl: str = "5m") -> tuple[Book, list[Call], Row]:
    """Calls a minute apart, each with `wide` more results; `stub`: the first result is cut away from its birth."""
    book, calls, results = Book(), list[Call](), Row()
    messages: list[Row] = [{"role": "user", "content": [{"type": "text", "text": f"begin {LONG}"}]}]
    ends: list[int] = []
    for number in range(steps):
        sent = [{"role": one["role"], "content": list(one["content"])} for one in messages]
        for end in {len(sent) - 1, *ends[-1:]}:
            sent[end]["content"][-1] = _marked(sent[end]["content"][-1], ttl)
        ends.append(len(sent) - 1)
        if stub and number:
            sent[2]["content"][0] = {"type": "tool_result", "tool_use_id": "t0.0", "content": "[cut]"}
        system = [_marked({"type": "text", "text": "be kind"}, ttl)]
        tools = [{"name": "a", "description": LONG, "input_schema": {"type": "object"}}]
        request = {"model": MODEL, "max_tokens": 9, "tools": tools, "system": system, "messages": sent}
        call = book.read(number, "s", json.dumps(request).encode())
        call.facts |= {"at": 60.0 * number, "output": 5}
        calls.append(call)
        ids = [f"t{number}.{at}" for at in range(wide)]
        results |= {one: f"{one} {LONG * 2}" for one in ids}
        asked: list[Row] = [{"type": "tool_use", "id": one, "name": "a", "input": {}} for one in ids]
        given = [{"type": "tool_result", "tool_use_id": one, "content": results[one]} for one in ids]
        messages += [{"role": "assistant", "content": asked}, {"role": "user", "content": given}]
    return book, calls, results


def test_a_conversation_that_was_never_edited_costs_what_is_simulated_of_it() -> None:
    book, calls, results = _conversation(8, 2)
    line = counterfactual.unedited(book, calls, results)
    assert counterfactual.never_edited(book, line, "5m") == counterfactual.alone(book, calls)


def test_what_was_cut_away_stands_in_the_unedited_transcript_again() -> None:
    whole_book, whole_calls, results = _conversation(8, 2)
    whole = counterfactual.prompts(whole_book, counterfactual.unedited(whole_book, whole_calls, results))
    book, calls, _ = _conversation(8, 2, stub=True)
    assert book.tree.ends[calls[-1].path[-1]] < whole[-1] - 300
    assert counterfactual.prompts(book, counterfactual.unedited(book, calls, results)) == whole


def test_the_counterfactuals_stand_in_order() -> None:
    book, calls, results = _conversation(30, 2)
    line = counterfactual.unedited(book, calls, results)
    found = [
        counterfactual.dollars(bills, MODEL)
        for bills in (
            counterfactual.lower_bound(book, line), counterfactual.never_edited(book, line, "5m"),
            counterfactual.never_edited(book, line, "1h"), counterfactual.uncached(book, line),
        )
    ]  # fmt: skip
    assert found == sorted(found)
    assert found[0] > 0.1 * found[3]


def test_marks_on_the_last_two_messages_lose_the_prefix_to_a_dozen_calls_at_once() -> None:
    for wide, lost in ((2, False), (12, True)):
        book, calls, _ = _conversation(12, wide)
        pinned = counterfactual.dollars(counterfactual.alone(book, calls), MODEL)
        two = counterfactual.dollars(counterfactual.last_two_messages(book, calls), MODEL)
        assert (two > 2 * pinned) is lost, (wide, pinned, two)


def test_the_peer_compacts_over_its_threshold_and_writes_again_what_it_cut() -> None:
    book, calls, results = _conversation(40, 4)
    line = counterfactual.unedited(book, calls, results)
    size = counterfactual.prompts(book, line)[-1]
    wide = peer.simulate(book, line, 4 * size + 2 * peer.RESERVE, released=False)
    assert (wide.compactions, len(wide.bills)) == (0, 40)
    narrow = peer.simulate(book, line, int(peer.RESERVE + size / 2), released=False)
    assert narrow.compactions >= 2
    assert len(narrow.bills) == 40 + narrow.compactions
    assert max(one.prompt for one in narrow.bills) < max(one.prompt for one in wide.bills)

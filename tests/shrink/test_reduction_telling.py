"""What stays of a long text in its stub."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.store.search import place
from shared.text import begun
from workers.reduction import prune
from workers.reduction.telling import LONGEST, odd_line

WORDS = ["river", "paper", "window", "garden", "letter", "market", "engine", "winter", "table", "answer"]


def _log(odd: str | None) -> str:
    rng = random.Random(1)
    lines = [
        f"2026-11-29T06:{n % 60:02}:00.{n % 1000:03} INFO gateway req={rng.getrandbits(48):012x} "
        f"{' '.join(rng.choices(WORDS, k=4))} status=200 ms={n}"
        for n in range(300)
    ]
    if odd:
        lines.insert(211, odd)
    return "\n".join(lines)


def _prose(odd: str | None) -> str:
    rng = random.Random(2)
    lines = [" ".join(rng.choices(WORDS, k=rng.randint(8, 30))).capitalize() + "." for _ in range(40)]
    if odd:
        lines.insert(7, odd)
    return "\n\n".join(lines)


def _records(odd: dict[str, str] | None) -> str:
    rng = random.Random(3)
    rows: list[dict[str, object]] = [
        {"id": rng.randint(1_000, 9_999), "name": rng.choice(WORDS), "open": rng.random() < 0.5} for _ in range(80)
    ]
    if odd:
        rows.insert(31, dict(odd))
    return json.dumps(rows, indent=1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (_log("2026-11-29T06:30:00.000 FATAL disk /dev/sdb1 is read-only, see INC-4711"), "INC-4711"),
        (_log("Traceback (most recent call last): File main.py, line 12, in <module>"), "Traceback"),
        (_prose("The parcel for Meyer has the number 00-3411-Q."), "00-3411-Q"),
        (_records({"error": "E_TIMEOUT after 30s"}), "E_TIMEOUT"),
    ],
    ids=["an error in a log", "a trace in a log", "a number in prose", "another key in records"],
)
def test_the_line_that_is_unlike_the_others_is_found(text: str, expected: str) -> None:
    found = odd_line(text)
    assert found is not None
    assert expected in found


@pytest.mark.parametrize("text", ["", "one line", "one\ntwo", "same as it was\n" * 50, _prose(None)])
def test_where_no_line_stands_out_none_is_shown(text: str) -> None:
    assert odd_line(text) is None


@given(st.text(max_size=2_000))
def test_whatever_the_text_it_is_one_short_line_of_it(text: str) -> None:
    found = odd_line(text)
    if found is not None:
        assert len(found) <= LONGEST
        assert "\n" not in found
        assert found.split()
        assert set(found.split()[:-1]) <= set(text.split())


def test_no_value_is_cut_where_a_stub_says_how_a_text_begins() -> None:
    """`VK9991-IVOR` was read as the value, and the whole was not asked for."""
    text = "the locker key of Siskin-5 是 VK9991-IVORY。\n" + "另一行。\n" * 60
    line = prune.line_of("read_file", 900, "result:7.0", text, recall=True)
    assert "it begins: the locker key of Siskin-5 是\u2026" in line
    assert "VK9991" not in line.partition("; one line in it")[0]


@given(st.text(alphabet="ab \n-", max_size=80), st.integers(2, 60))
def test_what_is_begun_ends_with_a_whole_word_and_says_that_it_goes_on(text: str, most: int) -> None:
    found = begun(text, most)
    assert len(found) <= max(most, len(text) if len(text) <= most else 0)
    if found == text:
        return
    shown = found.removesuffix("\u2026")
    assert text.startswith(shown)
    follows = text[len(shown)]
    assert follows.isspace() or not any(one.isspace() for one in text[1 : most - 1].rstrip())


def test_a_hit_is_shown_from_what_was_asked_for_to_the_end_of_its_block() -> None:
    body = "before " * 100 + "the mark of Heron-60 is SJ9097-IVORY " + "after " * 100
    start, end = place(body, ["Heron-60"])
    assert start < body.index("Heron-60") < end == len(body)
    assert begun(body[start:], 140).endswith("\u2026")

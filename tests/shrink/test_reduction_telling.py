"""What stays of a long text in its stub."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

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

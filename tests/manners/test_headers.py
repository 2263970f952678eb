"""Limits as providers tell them: a table."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from workers.manners.headers import read, reset_s
from workers.manners.terms import Told, Window

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
A = "anthropic-ratelimit-"
X = "x-ratelimit-"


@pytest.mark.parametrize(
    ("headers", "told"),
    [
        ({}, Told()),
        ({f"{A}requests-limit": "50", f"{A}requests-remaining": "49", f"{A}requests-reset": "2026-11-30T12:00:02Z"},
         Told(Window(50, 49, 3_000))),  # some time in that second
        ({f"{A}requests-limit": "50", f"{A}requests-remaining": "49", f"{A}requests-reset": "2026-11-30T12:00:02.5Z"},
         Told(Window(50, 49, 2_500))),
        ({f"{A}input-tokens-limit": "9", f"{A}tokens-limit": "12"}, Told(None, Window(9))),
        ({f"{A}tokens-limit": "12", f"{A}tokens-remaining": "3"}, Told(None, Window(12, 3))),
        ({f"{X}limit-requests": "60", f"{X}remaining-requests": "0", f"{X}reset-requests": "1s",
          f"{X}limit-tokens": "150000", f"{X}remaining-tokens": "149984", f"{X}reset-tokens": "6m0s"},
         Told(Window(60, 0, 1_000), None)),
        ({f"{X}limit-requests": "60", f"{X}reset-requests": "20ms"}, Told(Window(60, None, 20))),
        ({f"{X}limit": "20", f"{X}remaining": "0", f"{X}reset": str(int(NOW.timestamp() * 1_000) + 9_000)},
         Told(Window(20, 0, 9_000))),
        ({f"{X}limit-requests": "200", f"{X}remaining-requests": "199", f"{X}reset-requests": "7m12s"}, Told()),
        ({f"{X}limit-requests": "many"}, Told()),
        ({f"{X}limit-requests": "0"}, Told()),
        ({f"{X}limit-requests": "-5"}, Told()),
        ({f"{X}limit-requests": "nan"}, Told()),
        ({f"{X}limit-requests": "5", f"{X}reset-requests": "soon"}, Told(Window(5))),
        ({f"{A}requests-limit": "5", f"{A}requests-reset": "2026-11-30T11:00:00Z"}, Told(Window(5, None, 0))),
    ],
)  # fmt: skip
def test_limits_are_read_in_each_of_their_forms(headers: dict[str, str], told: Told) -> None:
    assert read(tuple(headers.items()), NOW) == told


def test_what_is_used_up_says_when_it_comes_back() -> None:
    headers = {f"{X}limit-requests": "60", f"{X}remaining-requests": "0", f"{X}reset-requests": "12s"}
    assert reset_s(tuple(headers.items()), NOW) == 12
    assert reset_s((("x-ratelimit-limit-requests", "60"), ("x-ratelimit-remaining-requests", "4")), NOW) is None

"""Warnings and the last instruction: figures of the moment, and what to do."""

from __future__ import annotations

from decimal import Decimal

import pytest

from shared.request import blocks
from workers.prompt import final, stable, warnings
from workers.prompt.warnings import Kind


@pytest.mark.parametrize(
    ("kind", "used", "limit", "fact"),
    [
        ("steps", "63", "90", "63 of 90 steps of this turn are used, 27 are left"),
        ("money", "0.7", "1", "$0.70 of $1.00 are spent, $0.30 are left"),
        ("money", "1.2", "1", "$1.20 of $1.00 are spent, $0.00 are left"),
        ("window", "140000", "200000", "about 70 % of the context window are used, room for some 60000 tokens is left"),
    ],
)
def test_a_warning_says_what_is_used_and_what_is_left(kind: Kind, used: str, limit: str, fact: str) -> None:
    line = warnings.line(kind, 70, Decimal(used), Decimal(limit))
    assert line.startswith(f"[Nightshift: {fact}. Bring the work to its end")
    assert line.endswith("]")


def test_at_ninety_per_cent_it_says_to_stop_gathering() -> None:
    assert "Stop gathering now" in warnings.line("steps", 90, Decimal(81), Decimal(90))


def test_the_system_prompt_explains_the_mark_that_warnings_begin_with() -> None:
    mark = "[Nightshift:"
    assert mark in stable.text("", ["read_file"])
    assert warnings.line("money", 90, Decimal(1), Decimal(1)).startswith(mark)
    assert final.instruction(final.Cause.STEPS).startswith(mark)


@pytest.mark.parametrize("cause", final.Cause)
def test_the_last_instruction_says_why_and_is_one_text_block(cause: final.Cause) -> None:
    (block,) = blocks.split(final.tail(cause))
    assert blocks.text_of(block) == final.instruction(cause)
    assert "no tools any more" in final.instruction(cause)


def test_each_cause_has_its_own_reason() -> None:
    assert len({final.instruction(cause) for cause in final.Cause}) == len(final.Cause)

"""Warnings and the last instruction: figures of the moment, and what to do."""

from __future__ import annotations

from decimal import Decimal

import pytest

from shared.request import blocks
from workers.prompt import final, stable, warnings
from workers.prompt.warnings import Kind


@pytest.mark.parametrize(
    ("kind", "percent", "used", "limit", "fact"),
    [
        ("steps", 70, None, None, "70 % of the steps of this turn are used"),
        ("steps", 70, "63", "90", "70 % of the steps of this turn are used, 27 steps left"),
        ("money", 74, "0.74", "1", "74 % of the money for this work are used, $0.26 left"),
        ("money", 120, "1.2", "1", "120 % of the money for this work are used, $0.00 left"),
        ("window", 70, "140000", "200000", "70 % of the context window are used, room for some 60000 tokens left"),
    ],
)
def test_a_warning_says_what_is_used_and_what_is_left(
    kind: Kind, percent: int, used: str | None, limit: str | None, fact: str
) -> None:
    line = warnings.line(kind, percent, Decimal(used) if used else None, Decimal(limit) if limit else None)
    assert line.startswith(f"[Nightshift: {fact}. ")
    assert line.endswith("]")


@pytest.mark.parametrize(("percent", "urgent"), [(70, False), (89, False), (90, True), (101, True)])
def test_from_ninety_per_cent_on_it_says_to_stop_gathering(percent: int, urgent: bool) -> None:
    assert ("Stop gathering now" in warnings.line("steps", percent)) is urgent


def test_the_system_prompt_explains_the_mark_that_warnings_begin_with() -> None:
    mark = "[Nightshift:"
    assert mark in stable.text("", ["read_file"])
    assert warnings.line("money", 90).startswith(mark)
    assert final.instruction(final.Cause.STEPS).startswith(mark)


@pytest.mark.parametrize("cause", final.Cause)
def test_the_last_instruction_says_why_and_is_one_text_block(cause: final.Cause) -> None:
    (block,) = blocks.split(final.tail(cause))
    assert blocks.text_of(block) == final.instruction(cause)
    assert "no tools any more" in final.instruction(cause)


def test_each_cause_has_its_own_reason() -> None:
    assert len({final.instruction(cause) for cause in final.Cause}) == len(final.Cause)

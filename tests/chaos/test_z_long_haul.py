"""The faults at their full length: they ran beside all other tests, and are asked for last."""

from __future__ import annotations

import pytest

from tests.chaos.longest import CASES, LongHaul


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", CASES)
def test_a_fault_at_its_full_length_costs_nothing(long_haul: LongHaul, name: str) -> None:
    figures = long_haul.result(name)
    assert figures.clean(), figures

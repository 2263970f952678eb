"""The core tools against their page: a new one states what it costs and why no lower rung of the ladder serves."""

from __future__ import annotations

import re
from pathlib import Path

from shared.request import estimate
from workers.tools import registry

PAGE = Path(__file__).parents[2] / "docs/decisions/0020-the-ladder-of-tools.md"
ROW = re.compile(r"^\| `(?P<tool>\w+)` \| (?P<tokens>[\d,]+) \| (?P<why>[^|]+) \|$", re.MULTILINE)
MODEL = "claude-sonnet-5-5"
MOST_TOGETHER = 5_000
"""Of tools alone, as estimated: with the stable prompt the floor stays under its 6,000 by the provider's count."""


def _stated() -> dict[str, tuple[int, str]]:
    rows = ROW.finditer(PAGE.read_text("utf-8"))
    return {row["tool"]: (int(row["tokens"].replace(",", "")), row["why"].strip()) for row in rows}


def _costs() -> dict[str, int]:
    ours = [name for name, tool in registry.TOOLS.items() if tool.ours]
    return {name: round(estimate.estimate_text(registry.schema_text([name]), MODEL)) for name in ours}


def test_each_core_tool_states_why_it_is_one_and_costs_no_more_than_it_states() -> None:
    stated, costs = _stated(), _costs()
    assert set(costs) <= set(stated)
    assert set(stated) <= set(costs) | {"web_search"}  # which a host may lack altogether
    assert {name: cost for name, cost in costs.items() if cost > stated[name][0]} == {}
    assert [name for name, (_, why) in stated.items() if len(why.split()) < 5] == []


def test_a_stated_cost_is_not_an_allowance_to_grow_into() -> None:
    stated, costs = _stated(), _costs()
    assert {name: cost for name, cost in costs.items() if stated[name][0] > cost * 1.15 + 10} == {}


def test_all_together_stay_under_the_floor() -> None:
    assert sum(_costs().values()) <= MOST_TOGETHER

"""The floor of every request: tools and the stable tier of the system prompt, in tokens as the provider counts them."""

from __future__ import annotations

from typing import Any

from tests.bench.figures import Figure
from tests.bench.house import SMALL_MODEL, House
from tests.bench.steps import prefix_of

MARK = 6_000
PEER = 12_100
"""Its first request has 48.6 kB, at a quarter of a token a character; measured once, not in the same run."""


def measure(house: House) -> list[Figure]:
    with house.workers(1, 8):
        (session,) = house.sessions(1)
        prefix = prefix_of(house, session)

    def count(**more: Any) -> int:
        body = {"model": SMALL_MODEL, "messages": [{"role": "user", "content": [{"type": "text", "text": "x"}]}]}
        return house.count_tokens(body | more)

    nothing = count()
    stable = [{"type": "text", "text": prefix["stable"]}]
    floor = count(system=stable, tools=prefix["tools"]) - nothing
    tools = count(tools=prefix["tools"]) - nothing
    whole = count(system=[{"type": "text", "text": prefix["system"]}], tools=prefix["tools"]) - nothing
    note = f"{len(prefix['tools'])} tools {tools:,}, stable tier {floor - tools:,}, the other tiers {whole - floor:,}"
    return [
        Figure(
            "floor: tools and stable prompt",
            floor,
            "tokens",
            PEER,
            "the peer's, by its own count",
            mark=MARK,
            note=note,
        )
    ]

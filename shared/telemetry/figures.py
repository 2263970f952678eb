"""What is counted of the events, once for every exporter: which figure, by which labels, how much. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from shared.telemetry.events import CallEnded, Event, ToolRan, TurnLeft


class Kind(StrEnum):
    COUNT = "count"
    SPREAD = "spread"


@dataclass(frozen=True, slots=True)
class Figure:
    """`labels` are the names of its labels, whose values come from closed sets: no figure grows with what is said."""

    name: str
    help: str
    kind: Kind
    labels: tuple[str, ...]


TOOL_RUNS = Figure("nightshift_tool_runs", "Runs of tools that are over", Kind.COUNT, ("tool", "status"))
TOOL_CHARS = Figure("nightshift_tool_chars", "Characters of results, as the model sees them", Kind.COUNT, ("tool",))
CALLS = Figure("nightshift_model_calls", "Calls to the provider", Kind.COUNT, ("purpose", "status"))
TOKENS = Figure("nightshift_model_tokens", "Billed tokens", Kind.COUNT, ("bucket",))
COST = Figure("nightshift_model_cost_usd", "Dollars of calls whose cost is known", Kind.COUNT, ("purpose",))
FIRST_TOKEN = Figure("nightshift_first_token_seconds", "Until a reply's first token", Kind.SPREAD, ("purpose",))
TURNS = Figure("nightshift_turns_left", "Turns that a worker was done with", Kind.COUNT, ("class", "status"))
TURN_S = Figure("nightshift_turn_seconds", "From claim to then", Kind.SPREAD, ("class", "status"))
ALL = (TOOL_RUNS, TOOL_CHARS, CALLS, TOKENS, COST, FIRST_TOKEN, TURNS, TURN_S)


@dataclass(frozen=True, slots=True)
class Reading:
    figure: Figure
    labels: tuple[str, ...]
    value: float


def of(event: Event) -> Iterator[Reading]:
    """What one event adds."""
    match event:
        case ToolRan():
            yield Reading(TOOL_RUNS, (event.tool, event.status), 1)
            yield Reading(TOOL_CHARS, (event.tool,), event.chars)
        case CallEnded():
            yield Reading(CALLS, (event.purpose, event.status), 1)
            for bucket, tokens in (
                ("input", event.input_tokens),
                ("output", event.output_tokens),
                ("cache_read", event.cache_read_tokens),
                ("cache_write", event.cache_write_tokens),
            ):
                yield Reading(TOKENS, (bucket,), tokens)
            if event.cost_usd is not None:
                yield Reading(COST, (event.purpose,), event.cost_usd)
            if event.first_token_s is not None:
                yield Reading(FIRST_TOKEN, (event.purpose,), event.first_token_s)
        case TurnLeft():
            yield Reading(TURNS, (event.turn_class, event.status), 1)
            yield Reading(TURN_S, (event.turn_class, event.status), event.seconds)
        case _:
            assert_never(event)

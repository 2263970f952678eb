"""What a tool is: its name and schema as the model sees them, how it may be repeated, and the function behind it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from shared.values import Repeat
from workers.tools.context import Arguments, ToolContext, ToolResult


class Waits(StrEnum):
    """Who answers a call that no process of ours can: the turn parks until they have."""

    PERSON = "person"
    CHILDREN = "children"


@dataclass(frozen=True, slots=True)
class Tool:
    """`run` gets arguments that fit `schema`; its text is cut at `cap_chars`, should it ever be longer.

    Where `waits` is set, `run` is never called: the call's answer comes from rows (workers/waiting).
    """

    name: str
    description: str
    schema: Mapping[str, object]
    repeat: Repeat
    run: Callable[[ToolContext, Arguments], ToolResult]
    cap_chars: int
    waits: Waits | None = None


def text(arguments: Arguments, key: str, default: str) -> str:
    value = arguments.get(key, default)
    assert isinstance(value, str)
    return value


def integer(arguments: Arguments, key: str, default: int) -> int:
    value = arguments.get(key, default)
    assert isinstance(value, int)
    return value


def flag(arguments: Arguments, key: str) -> bool:
    return arguments.get(key) is True


def never_runs(context: ToolContext, arguments: Arguments) -> ToolResult:
    """Of a tool that waits. Its answer comes from rows; that it is called at all is a fault of the loop."""
    raise RuntimeError(f"a tool that waits was run (step {context.step}, {len(arguments)} arguments)")

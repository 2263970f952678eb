"""What a tool is: its name and schema as the model sees them, how it may be repeated, and the function behind it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from shared.values import Repeat
from workers.tools.context import Arguments, ToolContext, ToolResult


@dataclass(frozen=True, slots=True)
class Tool:
    """`run` gets arguments that fit `schema`; its text is cut at `cap_chars`, should it ever be longer."""

    name: str
    description: str
    schema: Mapping[str, object]
    repeat: Repeat
    run: Callable[[ToolContext, Arguments], ToolResult]
    cap_chars: int


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

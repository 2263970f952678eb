"""Owns which reader reads which wire. Each turns what comes into the events that `Assembly` knows, so that bounds, text
in pieces, tool calls and usage are judged in one place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, assert_never

from shared.providers.declaration import Declaration
from shared.request.dialect import Wire
from workers.providers import events
from workers.providers.assembly import Assembly
from workers.providers.chat_reading import ChatReader
from workers.providers.converse_reading import ConverseReader
from workers.providers.native_reading import NativeReader
from workers.providers.responses_reading import ResponsesReader


class Reader(Protocol):
    def feed(self, event: dict[str, Any]) -> None:
        """One event of a stream. Raises BadStream, UnexpectedBlock or TooLarge."""
        ...

    def whole(self, body: dict[str, Any]) -> None:
        """An answer that came in one piece."""
        ...

    def ended(self) -> None:
        """The stream is over: what is whole by then is the reply."""
        ...


def reader(declared: Declaration, made: Assembly) -> Reader:
    match declared.wire:
        case Wire.ANTHROPIC:
            return NativeReader(made)
        case Wire.CHAT:
            return ChatReader(made, declared.name, declared.reasoning)
        case Wire.RESPONSES:
            return ResponsesReader(made, declared.name)
        case Wire.CONVERSE:
            return ConverseReader(made, declared.name)
        case _:
            assert_never(declared.wire)


def parser(declared: Declaration) -> Callable[[bytes], dict[str, Any]]:
    """How the data of one event is read: on chat completions it has no type, and ends with a word that is no JSON."""
    return events.parse_chunk if declared.wire is Wire.CHAT else events.parse_typed

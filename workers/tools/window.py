"""A window of lines out of a long text, with a last line that says what is shown of how much and how to read on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from shared.text import clean_text
from workers.tools import plain

_FOOTER = 300


@dataclass(slots=True)
class Window:
    """Lines from `first` (counted from 1) of `total`; `whole` is false if the text was not read to its end."""

    first: int
    shown: list[str] = field(default_factory=list[str])
    total: int = 0
    whole: bool = True
    cut_line: str | None = None


def take(
    source: Iterator[bytes],
    *,
    first: int,
    most_lines: int,
    most_chars: int,
    over: Callable[[], bool],
    counted: Callable[[], bool] = lambda: False,
) -> Window:
    """Reads to the end of `source` to count, keeping no more than the window.

    Stops early once `over()`, and, when the window is full, once `counted()`: a total is not worth any wait.
    """
    window = Window(first)
    room = most_chars - _FOOTER
    state = _Reader(window, room, most_lines)
    for chunk in source:
        if over() or (state.full and counted()):
            window.whole = False
            break
        state.feed(chunk)
    state.end()
    return window


class _Reader:
    """Counts lines chunk by chunk and keeps those of the window; of a line only as many bytes as there is room for."""

    def __init__(self, window: Window, room: int, most_lines: int) -> None:
        self._window = window
        self._room = room
        self._most_lines = most_lines
        self._line = b""
        self._length = 0
        self._ended = 0
        self.full = False

    def feed(self, chunk: bytes) -> None:
        skips = self._ended + chunk.count(b"\n") + 1 < self._window.first
        if self.full or skips:
            self._ended += chunk.count(b"\n")
            last = chunk.rfind(b"\n")
            self._length = self._length + len(chunk) if last < 0 else len(chunk) - last - 1
            return
        first, *others = chunk.split(b"\n")
        self._grow(first)
        for piece in others:
            self._close()
            self._grow(piece)

    def end(self) -> None:
        if self._length:
            self._close()
        self._window.total = self._ended

    def _grow(self, piece: bytes) -> None:
        self._length += len(piece)
        if not self.full and self._ended + 1 >= self._window.first:
            # Four bytes a character at most.
            self._line += piece[: max(0, self._room * 4 - len(self._line))]

    def _close(self) -> None:
        self._ended += 1
        if not self.full and self._ended >= self._window.first:
            self._keep()
        self._line, self._length = b"", 0

    def _keep(self) -> None:
        window = self._window
        text = clean_text(plain.decode(self._line.removesuffix(b"\r"))).replace("\r", "\u240d")
        if len(text) > self._room or len(self._line) < self._length:
            if window.shown:
                self.full = True
                return
            text = text[: self._room]
            window.cut_line = f"line {self._ended} is cut after {len(text):,} characters of {self._length:,} bytes"
        window.shown.append(text)
        self._room -= len(text) + 1
        self.full = self._room <= 0 or len(window.shown) >= self._most_lines


def render(window: Window, unread: str = "") -> tuple[str, str | None]:
    """The text for the model and, if anything is missing from it, the footer's words."""
    if not window.shown:
        return _nothing(window, unread)
    total, whole = window.total, window.whole and not unread
    last = window.first + len(window.shown) - 1
    told: list[str] = []
    seen = f"{total}" if whole else f"{max(total, last)}+"
    if window.first > 1 or last < total or not whole:
        words = f"lines {window.first}-{last} of {seen} shown"
        if last < total or not window.whole:
            words += f"; read on with offset={last + 1}"
        told.append(words)
    told += [window.cut_line] if window.cut_line else []
    told += [unread] if unread else []
    footer = "; ".join(told)
    return "\n".join(window.shown + ([f"[{footer}]"] if told else [])), footer or None


def _nothing(window: Window, unread: str) -> tuple[str, str | None]:
    if window.total == 0 and window.whole:
        return "[empty file]", None
    seen = f"{window.total}{'' if window.whole else '+'}"
    footer = f"nothing at line {window.first}: {unread or f'there are {seen} lines'}"
    return f"[{footer}]", footer

"""In a child: a linear-time pattern over the lines of many files, bounded in files, bytes, matches and time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from shared.text import clean_text
from workers.tools import beneath, plain, rendered, shown
from workers.tools.context import ToolRefused
from workers.tools.folders import MOST_DEPTH, Tally, walk
from workers.tools.pattern import Matcher, compile_glob, compile_pattern
from workers.tools.places import INPUT
from workers.tools.view import View, view_of

_MOST_TOTAL = 512 * 1024 * 1024
_MOST_MATCHES = 500
_MOST_IN_FILE = 50
_MOST_TEXT = 300
_MOST_LINE = 1024 * 1024
_FOOTER = 400


@dataclass(slots=True)
class _Search:
    """What was found and what was left out, while the search goes on."""

    matcher: Matcher
    by_line: bool
    glob: Matcher | None
    over: Callable[[], bool]
    room: int
    found: list[str] = field(default_factory=list[str])
    files: int = 0
    with_match: int = 0
    binary: int = 0
    unreadable: int = 0
    crowded: int = 0
    bytes_read: int = 0
    full: bool = False
    tally: Tally = field(default_factory=Tally)

    def done(self) -> bool:
        return self.full or self.bytes_read >= _MOST_TOTAL or self.over()


def warm() -> None:
    """Loads the engine before the first fork."""
    compile_pattern("a").search(b"a")


def search(request: dict[str, Any], fds: list[int], over: Callable[[], bool]) -> dict[str, object]:
    """`{"text", "note"}`, or `{"refused"}`: lines `path:line: text` and a last line on what was searched."""
    text = str(request["pattern"])
    try:
        state = _Search(
            matcher=compile_pattern(text),
            # The whole text's ends mean a line's ends here, which only holds when each line is matched alone.
            by_line=r"\A" in text or r"\z" in text,
            glob=compile_glob(str(request["glob"])),
            over=over,
            room=int(request["chars"]) - _FOOTER,
        )
        for fd, place in zip(fds, request["places"], strict=True):
            _search_place(state, fd, tuple(place["parts"]), str(place["under"]), bool(place["without_input"]))
    except ToolRefused as refused:
        return {"refused": refused.message}
    state.tally.stopped = state.tally.stopped and not state.full
    told = _told(state)
    return {"text": "\n".join([*state.found, f"[{told}]"[:_FOOTER]]), "note": told}


def _search_place(state: _Search, root: int, parts: tuple[str, ...], under: str, without_input: bool) -> None:
    if parts and _is_file(root, parts, under):
        with beneath.regular_file(root, parts, under) as fd:
            _search_file(state, fd, parts, under)
        return
    for entry in walk(root, parts, MOST_DEPTH, state.done, state.tally, under):
        if without_input and entry.parts[0] == INPUT:
            continue
        if entry.kind != "file" or not _wanted(state, entry.parts):
            continue
        try:
            with beneath.regular_file(root, entry.parts) as fd:
                _search_file(state, fd, entry.parts, under)
        except (ToolRefused, OSError):
            state.unreadable += 1
        if state.done():
            state.tally.stopped = True
            return


def _is_file(root: int, parts: tuple[str, ...], under: str) -> bool:
    with beneath.folder(root, parts[:-1], under) as parent:
        return beneath.kind_in(parent, parts[-1]) == "file"


def _wanted(state: _Search, parts: tuple[str, ...]) -> bool:
    return state.glob is None or state.glob.search("/".join(parts).encode("utf-8", "replace")) is not None


def _search_file(state: _Search, fd: int, parts: tuple[str, ...], under: str) -> None:
    start = plain.head(fd)
    kind = plain.sniff(start)
    if isinstance(kind, plain.Binary):
        state.binary += 1
        return
    state.files += 1
    view = view_of(parts, start)
    before = len(state.found)
    try:
        _search_text(state, rendered.chunks(fd, view, kind), parts, under)
    except (ValueError, LookupError, TypeError, AttributeError):
        if view is View.PLAIN:
            raise
        # A parser gave up on a stranger's mail: its text as it stands is better than nothing.
        del state.found[before:]
        _search_text(state, plain.chunks(fd, kind), parts, under)
    state.with_match += len(state.found) > before


def _search_text(state: _Search, source: Iterator[bytes], parts: tuple[str, ...], under: str) -> None:
    path = under + shown.name(parts)
    for here, (number, line) in enumerate(_matches(state, source)):
        if here >= _MOST_IN_FILE:
            state.crowded += 1
            return
        text = f"{path}:{number}: {_cut(line)}"
        state.room -= len(text) + 1
        if state.room < 0 or len(state.found) >= _MOST_MATCHES:
            state.full = True
            return
        state.found.append(text)


def _matches(state: _Search, source: Iterator[bytes]) -> Iterator[tuple[int, bytes]]:
    """Number and text of each line that matches, block by block of whole lines."""
    number, last = 1, 0
    for block in _blocks(source):
        state.bytes_read += len(block)
        if state.done():
            return
        for found, line in _in_block(state, block, number):
            if found > last:  # a line that comes in pieces is one match
                yield found, line
            last = found
        number += block.count(b"\n")


def _blocks(source: Iterator[bytes]) -> Iterator[bytes]:
    """Text that ends with a line's end, the last and a line beyond a megabyte apart."""
    rest = b""
    for chunk in source:
        rest += chunk
        end = rest.rfind(b"\n") + 1
        if end or len(rest) > _MOST_LINE:
            end = end or len(rest)
            yield _as_utf8(rest[:end])
            rest = rest[end:]
    if rest:
        yield _as_utf8(rest)


def _as_utf8(block: bytes) -> bytes:
    if b"\r\n" in block:
        block = block.replace(b"\r\n", b"\n")
    try:
        block.decode()
    except UnicodeDecodeError:
        return b"\n".join(plain.decode(line).encode() for line in block.split(b"\n"))
    return block


def _in_block(state: _Search, block: bytes, number: int) -> Iterator[tuple[int, bytes]]:
    if state.by_line:
        for index, line in enumerate(block.removesuffix(b"\n").split(b"\n")):
            if state.matcher.search(line) is not None:
                yield number + index, line
        return
    at, counted = 0, 0
    while at < len(block):
        match = state.matcher.search(block, at)
        if match is None or match.start() >= len(block):
            return
        begin = block.rfind(b"\n", 0, match.start()) + 1
        end = block.find(b"\n", match.start())
        end = len(block) if end < 0 else end
        number += block.count(b"\n", counted, begin)
        counted = begin
        # Of a very long line, the part around the match.
        yield number, block[begin if match.start() - begin < _MOST_TEXT else match.start() - 60 : end]
        at = end + 1


def _cut(line: bytes) -> str:
    text = clean_text(plain.decode(line[: _MOST_TEXT * 4])).replace("\r", "\u240d").strip()
    return text if len(text) <= _MOST_TEXT and len(line) <= _MOST_TEXT * 4 else text[:_MOST_TEXT] + "…"


def _told(state: _Search) -> str:
    shown_count = len(state.found)
    told = [
        f"{shown_count} matches in {state.with_match} of {state.files} files"
        if shown_count
        else f"no match in {state.files} files"
    ]
    if state.full:
        told.append("more exist: narrow path, glob or pattern")
    if state.crowded:
        told.append(f"{state.crowded} files have more than the {_MOST_IN_FILE} shown")
    if state.binary:
        told.append(f"{state.binary} binary files skipped")
    if state.unreadable:
        told.append(f"{state.unreadable} files could not be read")
    return "; ".join([*told, *state.tally.sentences()])

"""Where a piece of text stands in a file, and the file with another in its place. Pure.

Exact first. Then line by line, forgiving what models get wrong about a text they have read: spaces at the ends of
lines, typographic quotes and dashes, how far a block is indented (the new text is moved by as much). Nothing else is
forgiven: a place that is only similar may be another place, and replacing it would hide that.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

_AROUND = 3
_MOST_COMPARED = 200
"""Lines on each side: comparing takes their product, and more where all are alike."""
_MOST_PLACES = 10
_SHOWN = 120
_PLAIN = str.maketrans("\u2018\u2019\u201c\u201d\u2013\u2014\u2212\u00a0\u202f", "''\"\"---  ")


@dataclass(frozen=True, slots=True)
class Patched:
    """The new text, a diff with three lines around each change, and what was forgiven, if anything was."""

    text: str
    diff: str
    forgiven: str | None = None
    places: int = 1


@dataclass(frozen=True, slots=True)
class NotPatched:
    """Why not, and what would help."""

    why: str


@dataclass(frozen=True, slots=True)
class _Span:
    """Lines `first` (from 0) up to before `end` become `lines`."""

    first: int
    end: int
    lines: tuple[str, ...]


def patch(text: str, old: str, new: str, *, everywhere: bool = False) -> Patched | NotPatched:
    """`text` with `old` replaced by `new`: in the one place where it stands, or in all. `old` must not be empty."""
    if old == new:
        return NotPatched("old and new are the same: there is nothing to change")
    count = text.count(old)
    if count == 1 or (count and everywhere):
        return Patched(text.replace(old, new), _diff_of(text, old, new), places=count)
    if count:
        return _many(_lines_of(text, old), count)
    if everywhere:
        return NotPatched(f"old does not stand there letter by letter, and everywhere takes no less{_hint(text, old)}")
    return _forgiving(text, old, new)


def _many(lines: Sequence[int], count: int) -> NotPatched:
    shown = ", ".join(map(str, lines[:_MOST_PLACES])) + (", …" if count > _MOST_PLACES else "")
    return NotPatched(
        f"old stands in {count} places (lines {shown}): take more lines around it into old and new, or everywhere: true"
    )


def _lines_of(text: str, old: str) -> list[int]:
    found: list[int] = []
    at, line, counted = text.find(old), 1, 0
    while at >= 0 and len(found) <= _MOST_PLACES:
        line += text.count("\n", counted, at)
        counted = at
        found.append(line)
        at = text.find(old, at + len(old))
    return found


# --- forgiving ------------------------------------------------------------------------------------------------------


def _ends(line: str) -> str:
    return line.rstrip()


def _letters(line: str) -> str:
    return line.translate(_PLAIN).rstrip()


def _indents(line: str) -> str:
    return line.translate(_PLAIN).strip()


_LEVELS: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("spaces at the ends of lines", _ends),
    ("quotes, dashes and spaces", _letters),
    ("the indentation", _indents),
)


def _forgiving(text: str, old: str, new: str) -> Patched | NotPatched:
    lines, wanted = text.split("\n"), old.strip("\n").split("\n")
    if not any(line.strip() for line in wanted):
        return NotPatched("old is blank: name the lines that are to change")
    for forgiven, plain in _LEVELS:
        places = _places([plain(line) for line in lines], [plain(line) for line in wanted])
        shifts = [(at, shift) for at in places if (shift := _shift(lines[at:], wanted)) is not None]
        if forgiven != "the indentation":
            shifts = [(at, ("", "")) for at in places]
        if len(shifts) > 1:
            return _many([at + 1 for at, _ in shifts], len(shifts))
        if shifts:
            ((at, (there, here)),) = shifts
            added = [] if new.strip("\n") == "" else new.strip("\n").split("\n")
            ending = "\r" if lines[at].endswith("\r") else ""
            moved = tuple(_moved(line.rstrip("\r"), there, here) + ending for line in added)
            span = _Span(at, at + len(wanted), moved)
            changed = [*lines[: span.first], *span.lines, *lines[span.end :]]
            return Patched("\n".join(changed), _hunk(lines, span), forgiven)
    return NotPatched(f"old does not stand there{_hint(text, old)}")


def _places(lines: Sequence[str], wanted: Sequence[str]) -> list[int]:
    """Where `wanted` stands as whole lines, by the number of its first line."""
    whole, piece = "\n" + "\n".join(lines) + "\n", "\n" + "\n".join(wanted) + "\n"
    found: list[int] = []
    at, line, counted = whole.find(piece), 0, 0
    while at >= 0 and len(found) <= _MOST_PLACES:
        line += whole.count("\n", counted, at)
        counted = at
        found.append(line)
        at = whole.find(piece, at + 1)
    return found


def _shift(lines: Sequence[str], wanted: Sequence[str]) -> tuple[str, str] | None:
    """The indentation that all of `wanted` lacks or has too much, as (there, here); None where its lines stand in
    another relation to each other than those of the file."""
    pairs = [(_indent(line), _indent(want)) for line, want in zip(lines, wanted, strict=False) if want.strip()]
    there, here = min(pairs, key=lambda pair: len(pair[1]))
    fits = all(want.startswith(here) and line == there + want[len(here) :] for line, want in pairs)
    return (there, here) if fits else None


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]


def _moved(line: str, there: str, here: str) -> str:
    if there == here or not line.strip():
        return line
    return there + (line[len(here) :] if line.startswith(here) else line.lstrip(" \t"))


def _hint(text: str, old: str) -> str:
    """Where its first line stands, and where the two part: most often the file is not what the model remembers."""
    lines = [line.strip() for line in text.removesuffix("\n").split("\n")]
    wanted = [line.strip() for line in old.strip("\n").split("\n")]
    first = next((at for at, line in enumerate(wanted) if line), 0)
    try:
        at = lines.index(wanted[first])
    except ValueError:
        return ": read the file again, and copy the lines as they are"
    there, here = lines[at:], wanted[first:]
    for number, (line, want) in enumerate(zip(there, here, strict=False), at + 1):
        if line != want:
            return f": line {number} is {line[:_SHOWN]!r}, where old has {want[:_SHOWN]!r}"
    if len(there) < len(here):
        return f": the file ends at line {len(lines)}, and old goes on"
    return ": its lines are there, but indented otherwise to each other"


# --- the diff -------------------------------------------------------------------------------------------------------


def _diff_of(text: str, old: str, new: str) -> str:
    """Of an exact replacement: a hunk a place, each of whole lines."""
    lines, hunks = text.split("\n"), list[str]()
    at, line, counted, grown = text.find(old), 0, 0, 0
    while at >= 0:
        if len(hunks) >= _MOST_PLACES:
            hunks.append("[more places changed]")
            break
        line += text.count("\n", counted, at)
        counted = at
        end = line + old.count("\n") + 1
        begin, rest = text.rfind("\n", 0, at) + 1, text.find("\n", at + len(old))
        changed = text[begin:at] + new + text[at + len(old) : len(text) if rest < 0 else rest]
        span = _Span(line, end, tuple(changed.split("\n")))
        hunks.append(_hunk(lines, span, grown))
        grown += len(span.lines) - (span.end - span.first)
        at = text.find(old, at + len(old))
    return "\n".join(hunks)


def _hunk(lines: Sequence[str], span: _Span, grown: int = 0) -> str:
    """`grown`: how many lines the changes before it have added."""
    begin, end = max(0, span.first - _AROUND), min(len(lines), span.end + _AROUND)
    before, after = lines[begin : span.first], lines[span.end : end]
    was, now = [*before, *lines[span.first : span.end], *after], [*before, *span.lines, *after]
    body = [f"{mark}{line.rstrip()}" for mark, line in _marked(was, now)]
    return "\n".join([f"@@ -{begin + 1},{len(was)} +{begin + 1 + grown},{len(now)} @@", *body])


def _marked(was: Sequence[str], now: Sequence[str]) -> list[tuple[str, str]]:
    if max(len(was), len(now)) > _MOST_COMPARED:
        codes = [("replace", 0, len(was), 0, len(now))]
    else:
        codes = difflib.SequenceMatcher(None, was, now, autojunk=False).get_opcodes()
    found: list[tuple[str, str]] = []
    for kind, a, b, c, d in codes:
        if kind == "equal":
            found += [(" ", line) for line in was[a:b]]
        else:
            found += [("-", line) for line in was[a:b]]
            found += [("+", line) for line in now[c:d]]
    return found

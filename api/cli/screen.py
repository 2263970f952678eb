"""Owns what a person sees: rich where stdout is a terminal, plain text otherwise, foreign text always made harmless."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from api.cli import safe

if TYPE_CHECKING:
    from rich.console import Console


def is_rich(stream: TextIO | None = None) -> bool:
    return (stream or sys.stdout).isatty() and os.environ.get("TERM") != "dumb"


def has_colour(stream: TextIO | None = None) -> bool:
    return is_rich(stream) and not os.environ.get("NO_COLOR")


def prepare() -> None:
    """A terminal that cannot show a sign shows `?`, and no command dies of it."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")


def say(text: str = "") -> None:
    print(safe.text(text), flush=True)


def write(text: str) -> None:
    """Streamed text: no line end of its own, and out at once."""
    sys.stdout.write(safe.text(text))
    sys.stdout.flush()


def plain(text: str) -> str:
    """One harmless line, for what is printed between our own colours."""
    return safe.line(text)


def note(text: str) -> None:
    """About the work rather than of it: to stderr, so that stdout stays what was asked for."""
    flat = safe.line(text)
    print(f"\x1b[2m{flat}\x1b[0m" if has_colour(sys.stderr) else flat, file=sys.stderr, flush=True)


def failure(code: str, message: str) -> str:
    """One line for what went wrong: its stable code, and the sentence."""
    head = f"\x1b[31m{safe.line(code)}\x1b[0m" if has_colour(sys.stderr) else safe.line(code)
    return f"{head}: {safe.line(message)}"


def as_json(value: object) -> None:
    """The API's own shape. ASCII, so that no text in it can command a terminal."""
    print(json.dumps(value, indent=2 if is_rich() else None), flush=True)


def as_line(value: object) -> None:
    """One JSON value on one line, out at once."""
    print(json.dumps(value), flush=True)


def table(
    columns: Sequence[str], rows: Sequence[Sequence[object]], *, right: Sequence[str] = (), none: str = ""
) -> None:
    """Rows under a head; `none` instead, where there is no row. Columns named in `right` hold numbers."""
    if none and not rows:
        say(none)
        return
    cells = [[safe.line(cell) for cell in row] for row in rows]
    if is_rich():
        _rich_table(columns, cells, right)
        return
    widths = [max([len(name), *(len(row[n]) for row in cells)]) for n, name in enumerate(columns)]
    for row in ([name.upper() for name in columns], *cells):
        padded = [
            cell.rjust(width) if name in right else cell.ljust(width)
            for cell, width, name in zip(row, widths, columns, strict=True)
        ]
        print("  ".join(padded).rstrip())
    sys.stdout.flush()


def _rich_table(columns: Sequence[str], cells: Sequence[Sequence[str]], right: Sequence[str]) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in columns:
        drawn.add_column(name, justify="right" if name in right else "left", overflow="fold")
    for row in cells:
        drawn.add_row(*(Text(cell) for cell in row))  # Text: square brackets in foreign text are not markup
    console().print(drawn)


def console() -> Console:
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False)


def unknown(row: Mapping[str, Any]) -> str:
    """The mark of what has tool runs of which nobody knows whether they happened; empty where it has none."""
    return f"? {row['unknown_effects']}" if row.get("unknown_effects") else ""


def unknown_sentence(row: Mapping[str, Any]) -> str:
    return f"{unknown(row)} of its tool runs may or may not have happened: their worker was lost"


def money(value: object) -> str:
    """Dollars as the API sends them. None is unknown and never zero."""
    from decimal import Decimal, InvalidOperation

    if value is None:
        return "unknown"
    try:
        amount = Decimal(str(value))
    except InvalidOperation:
        return safe.line(value)
    if 0 < amount < Decimal("0.00005"):
        return "<$0.0001"  # what was spent does not look like nothing
    return f"${amount:,.4f}" if abs(amount) < 1 else f"${amount:,.2f}"


def note_rehearsal(is_rehearsal: bool) -> None:
    """Said wherever money is shown."""
    if is_rehearsal:
        note("rehearsal: a local stand-in answered, at the real model's prices; nothing was spent")


def count(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else ("-" if value is None else safe.line(value))


def when(value: object) -> str:
    """An instant of the API in this machine's zone, to the second; the original where it is not one."""
    from datetime import datetime

    if not value:
        return "-"
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError:
        return safe.line(value)
    return moment.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def duration(seconds: float) -> str:
    """In the largest unit of which there are at least two."""
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"


def tokens(found: Mapping[str, Any] | None) -> str:
    if not found:
        return "tokens unknown"
    cache_write = found.get("cache_write", found.get("cache_write_5m"))
    return (
        f"{count(found.get('input'))} in, {count(found.get('output'))} out,"
        f" {count(found.get('cache_read'))} read from cache, {count(cache_write)} written to it"
    )

"""Owns what a table says: rows, columns, sums, and what is missing when it was not read whole."""

import csv
from typing import Final

from deploy.rehearsal.policies.lines import best, cite, counted, short
from deploy.rehearsal.policies.workspace import Read

MOST_COLUMNS: Final = 8


def section(reads: list[Read]) -> list[str]:
    """Markdown lines, one table each."""
    return [line for read in reads for line in _table(read)]


def _table(read: Read) -> list[str]:
    text = [line for _, line in read.lines if line.strip()]
    if not text:
        return []
    rows = list(csv.reader(text, delimiter=_delimiter(text[0])))
    head, body = rows[0], rows[1:]
    if all(_number(cell) is not None for cell in head):
        head, body = [f"column {at}" for at in range(1, len(head) + 1)], rows
    partly = (
        f"; only part of it was read ({short(read.left_out, 80)}), so these are the figures of that part"
        if read.left_out
        else ""
    )
    names = ", ".join(short(name, 40) for name in head[:MOST_COLUMNS])
    lines = [f"- `{read.path}`: {counted(len(body), 'row')}, columns {names}{partly}"]
    for at, name in enumerate(head[:MOST_COLUMNS]):
        values = [value for row in body if len(row) > at and (value := _number(row[at])) is not None]
        if values and len(values) >= len(body) / 2:
            lines.append(
                f"  - {short(name, 40)}: sum {_show(sum(values))}, from {_show(min(values))} to {_show(max(values))}"
                + (f" ({counted(len(body) - len(values), 'row')} without a number)" if len(values) < len(body) else "")
            )
    if body:
        lines.append(f"  - last row: {short(', '.join(body[-1]))}")
        lines += [f"  - “{short(line)}” ({cite(read, number)})" for number, line in best(read.lines[1:-1], 1)]
    return lines


def _delimiter(head: str) -> str:
    return max("\t;,", key=head.count)


def _number(cell: str) -> float | None:
    try:
        return float(cell.strip().replace(",", "").lstrip("$€£"))
    except ValueError:
        return None


def _show(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"

"""How the figures look to a person."""

from __future__ import annotations

from collections.abc import Iterable

from deploy.drill.figures import Figures

_HEAD = ("point", "runs", "turns", "lost", "duplicated", "unknown", "hung", "p50 s", "p95 s", "billed twice")


def lines(table: Iterable[Figures]) -> list[str]:
    """A table in Markdown, then what was wrong."""
    figures = [one for one in table if one.runs]
    rows = [_HEAD, *(_row(one) for one in figures)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(_HEAD))]
    drawn = [_line(row, widths) for row in rows]
    drawn.insert(1, "|" + "|".join("-" * (width + 2) if not at else "-" * (width + 1) + ":" for at, width in
                                   enumerate(widths)) + "|")  # fmt: skip
    return [*drawn, *(f"{one.point}: {told}" for one in figures for told in one.told)]


def _row(one: Figures) -> tuple[str, ...]:
    unknown = f"{one.unknown}" + (f" ({one.wrongly_unknown} wrongly)" if one.wrongly_unknown else "")
    counts = (one.runs, one.turns, one.lost, one.duplicated)
    return (
        one.point, *(str(count) for count in counts), unknown, str(one.hung), _seconds(one.at(0.5)),
        _seconds(one.at(0.95)), str(one.billed_again),
    )  # fmt: skip


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _line(cells: tuple[str, ...], widths: list[int]) -> str:
    return "| " + " | ".join(c.ljust(w) if not at else c.rjust(w) for at, (c, w) in
                             enumerate(zip(cells, widths, strict=True))) + " |"  # fmt: skip

"""What a benchmark gives: figures, each beside its baseline of the same run and its mark, as a table and as JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Literal

import orjson
from rich.console import Console
from rich.table import Table


@dataclass(frozen=True, slots=True)
class Figure:
    """`mark` is what `value` is held against (or `judged`, where the mark is for another number)."""

    name: str
    value: float
    unit: str
    baseline: float | None = None
    baseline_name: str = ""
    mark: float | None = None
    sense: Literal["at most", "at least"] = "at most"
    judged: float | None = None
    note: str = ""
    detail: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def met(self) -> bool | None:
        if self.mark is None:
            return None
        held = self.value if self.judged is None else self.judged
        return held <= self.mark if self.sense == "at most" else held >= self.mark

    @property
    def ratio(self) -> float | None:
        return self.value / self.baseline if self.baseline else None


def show(figures: list[Figure]) -> None:
    table = Table("figure", "value", "baseline of the same run", "ratio", "mark", "", "note")
    for one in figures:
        met = {None: "", True: "met", False: "MISSED"}[one.met]
        table.add_row(
            one.name, _number(one.value, one.unit),
            "" if one.baseline is None else f"{_number(one.baseline, one.unit)} {one.baseline_name}",
            "" if one.ratio is None else f"{one.ratio:.2f}",
            "" if one.mark is None else f"{one.sense} {one.mark:g}", met, one.note,
        )  # fmt: skip
    Console(width=190).print(table)


def keep(figures: list[Figure], path: Path, machine: dict[str, Any]) -> None:
    rows = [asdict(one) | {"ratio": one.ratio, "met": one.met} for one in figures]
    path.write_bytes(orjson.dumps({"machine": machine, "figures": rows}, option=orjson.OPT_INDENT_2))


def _number(value: float, unit: str) -> str:
    return f"{value:,.2f} {unit}" if value < 100 else f"{value:,.0f} {unit}"


def quantile(values: list[float], q: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(q * len(ordered)))]


def middle(values: list[float]) -> float:
    return median(values) if values else float("nan")

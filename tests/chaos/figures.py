"""What each fault cost: counted from rows and from the provider's ledger, printed as a table at the end of the run."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg.rows import dict_row

from deploy.drill.transcript import doubled
from tests.chaos.rig import TERMINAL, Rig, Row
from tests.ground import until


@dataclass(frozen=True, slots=True)
class Resume:
    """Seconds from the kill until it was seen, until the next worker's life began, until the turn was claimed again."""

    seen_dead: float
    booted: float | None
    claimed: float


@dataclass(slots=True)
class Figures:
    """One line of the table."""

    name: str
    turns: int = 0
    lost: int = 0
    duplicated: int = 0
    hung: int = 0
    takeovers: int = 0
    repeated_calls: int = 0
    resumes: list[Resume] = field(default_factory=list[Resume])
    seconds: list[float] = field(default_factory=list[float])
    note: str = ""

    def clean(self) -> bool:
        return (self.lost, self.duplicated, self.hung) == (0, 0, 0)


TABLE: list[Figures] = []


def resume(rig: Rig, turn: str, killed_at: float, before: Row, seconds: float = 30.0) -> Resume:
    """Follow a turn whose holder (`before`, its `workers` row) was killed at `killed_at` until it runs again."""
    seen_dead: float | None = None
    with polling(rig) as ask:

        def again() -> Resume | None:
            nonlocal seen_dead
            row = ask(
                "select t.status, t.holder, t.takeovers, extract(epoch from clock_timestamp())::float8 as now,"
                " (select extract(epoch from w.started_at)::float8 from workers w where w.boot_id = t.holder) as born"
                " from turns t where t.id = %s",
                turn,
            )
            if seen_dead is None and row["holder"] != before["boot_id"]:
                seen_dead = row["now"] - killed_at
            moved_on = row["status"] in TERMINAL or (row["holder"] and row["holder"] != before["boot_id"])
            if not moved_on or seen_dead is None:
                return None
            born = row["born"] - killed_at if row["born"] and row["born"] > killed_at else None
            return Resume(seen_dead, born, row["now"] - killed_at)

        return until(again, seconds, f"turn {turn} running again")


@contextlib.contextmanager
def polling(rig: Rig) -> Generator[Callable[..., Row]]:
    """One connection for quick questions of one row each."""
    with psycopg.connect(rig.facts["database_url"], autocommit=True) as connection:

        def ask(query: str, *params: Any) -> Row:
            found = connection.cursor(row_factory=dict_row).execute(query.encode(), params).fetchone()
            assert found is not None
            return found

        yield ask


def account(rig: Rig, name: str, turns: Sequence[str], *, seconds: float = 60.0) -> Figures:
    """Wait for all turns; count what was lost, doubled or hangs, and the calls that did not come to an answer."""
    begun = time.monotonic()
    figures = Figures(name, turns=len(turns))
    try:
        rows = rig.all_ended(turns, seconds)
    except AssertionError:
        rows = rig.rows("select * from turns where id = any(%s::uuid[])", list(turns))
        figures.hung = sum(row["status"] not in TERMINAL for row in rows)
        TABLE.append(figures)
        raise
    figures.seconds.append(time.monotonic() - begun)
    figures.lost = sum(row["status"] != "done" for row in rows)
    figures.takeovers = sum(row["takeovers"] for row in rows)
    for session in {str(row["session"]) for row in rows}:
        _count_session(rig, session, figures)
    TABLE.append(figures)
    if figures.lost:
        figures.note = str({row["error_code"] for row in rows if row["status"] != "done"})
    spoilt = "select count(*) as n from calls where turn = any(%s::uuid[]) and status <> 'settled'"
    figures.repeated_calls = rig.one(spoilt, list(turns))["n"]
    return figures


def _count_session(rig: Rig, session: str, figures: Figures) -> None:
    """The transcript is whole, and the provider was asked no more often than the rows say."""
    figures.duplicated += doubled(rig, session)
    calls = rig.rows("select status, step, turn from calls where session = %s", session)
    ledger = rig.provider.ledger(session)
    if len(ledger) > len(calls):
        figures.duplicated += len(ledger) - len(calls)
    figures.lost += sum(call["status"] == "reserved" for call in calls)
    assert [c["difference"] for c in ledger if c["extended"] is False] == [], "a request does not extend the last one"


def table() -> list[str]:
    """The figures of all faults so far."""
    lines = [f"{'fault':<64}{'turns':>6}{'lost':>5}{'dup':>4}{'hung':>5}{'taken':>6}{'calls+':>7}  seconds"]
    for one in TABLE:
        counts = f"{one.turns:>6}{one.lost:>5}{one.duplicated:>4}{one.hung:>5}{one.takeovers:>6}{one.repeated_calls:>7}"
        lines.append(f"{one.name[:63]:<64}{counts}  {'; '.join(_told(one))}")
    every = [one for figures in TABLE for one in figures.resumes]
    for name in ("seen_dead", "booted", "claimed"):
        values = sorted(value for one in every if (value := getattr(one, name)) is not None)
        if values:
            lines.append(f"seconds from kill to {name}: p50 {_at(values, 0.5):.2f}, p95 {_at(values, 0.95):.2f}")
    return lines


def _told(one: Figures) -> list[str]:
    told = [
        f"seen dead {r.seen_dead:.2f}, {f'booted {r.booted:.2f}, ' if r.booted else ''}claimed {r.claimed:.2f}"
        for r in one.resumes
    ]
    told += [f"done after {one.seconds[0]:.1f}"] if one.seconds and not told else []
    return [*told, one.note] if one.note else told


def _at(values: list[float], part: float) -> float:
    return values[min(len(values) - 1, int(part * len(values)))]

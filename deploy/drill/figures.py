"""What came of a point, counted from rows, from the provider's ledger and from the log of effects."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg

from deploy.drill import effect
from deploy.drill.effect import Key
from deploy.drill.load import Load, approve
from deploy.drill.rig import TERMINAL, Rig, Row, slack
from deploy.drill.transcript import doubled
from deploy.drill.up import EFFECTS_FILE

_TURNS = "select * from turns where id = any(%s::uuid[]) or parent = any(%s::uuid[])"
_RUNS = "select turn::text, step, ordinal, status from tool_runs where turn = any(%s::uuid[]) and tool = any(%s)"

_COUNTS = ("runs", "turns", "lost", "duplicated", "unknown", "wrongly_unknown", "hung", "billed_again")


@dataclass(slots=True)
class Figures:
    """One line of the table, over all its runs. `resumes` are seconds from the blow until a turn ran again."""

    point: str
    runs: int = 0
    turns: int = 0
    lost: int = 0
    duplicated: int = 0
    unknown: int = 0
    wrongly_unknown: int = 0
    hung: int = 0
    billed_again: int = 0
    resumes: list[float] = field(default_factory=list[float])
    told: list[str] = field(default_factory=list[str])

    @property
    def clean(self) -> bool:
        return (self.lost, self.duplicated, self.wrongly_unknown, self.hung) == (0, 0, 0, 0)

    def at(self, part: float) -> float | None:
        """A percentile of the seconds to resume."""
        values = sorted(self.resumes)
        return values[min(len(values) - 1, int(part * len(values)))] if values else None

    def as_json(self) -> dict[str, object]:
        return {
            "point": self.point, "runs": self.runs, "turns": self.turns, "lost": self.lost,
            "duplicated": self.duplicated, "unknown": self.unknown, "wrongly_unknown": self.wrongly_unknown,
            "hung": self.hung, "billed_again": self.billed_again, "resume_p50_s": self.at(0.5),
            "resume_p95_s": self.at(0.95), "resumes_s": self.resumes, "told": self.told,
        }  # fmt: skip

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Figures:
        """What `as_json` gave, read again."""
        kept = {name: row[name] for name in _COUNTS}
        return cls(row["point"], **kept, resumes=row["resumes_s"], told=row["told"])

    def take(self, other: Figures) -> None:
        """Count another's runs of this point with one's own."""
        for name in _COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.resumes += other.resumes
        self.told += other.told

    def wrong(self, kind: str, what: str) -> None:
        """Count one against this point, and say what it was."""
        setattr(self, kind, getattr(self, kind) + 1)
        self.told.append(f"{kind}: {what}")


def account(
    rig: Rig, figures: Figures, load: Load, *, may_be_unknown: Collection[Key] = (), ends: Collection[str] = ("done",),
    seconds: float = 60.0,
) -> None:  # fmt: skip
    """Wait for the load's end and count it. Only runs of `may_be_unknown` may be told as unknown."""
    rows = _ended(rig, load.turns, seconds * slack())
    figures.runs += 1
    figures.turns += len(rows)
    for row in rows:
        if row["status"] not in TERMINAL:
            figures.wrong("hung", f"turn {row['id']} is {row['status']} on {row['parked_on']}, step {row['step']}")
        elif row["status"] not in ends:
            figures.wrong("lost", f"turn {row['id']} is {row['status']}: {row['error_code']} {row['error_text']}")
    count_doubled(rig, figures, load)
    _count_effects(rig, figures, rows, load.effects if set(ends) == {"done"} else None, may_be_unknown)
    for row in rows:
        _count_calls(rig, figures, row)
    for session in {str(row["session"]) for row in rows}:
        for _ in range(doubled(rig, session) if figures.hung == 0 else 0):
            figures.wrong("duplicated", f"the transcript of session {session} is not whole")


def _ended(rig: Rig, turns: Sequence[str], seconds: float) -> list[Row]:
    """The turns and their children, once all have ended or the time is over. Outages of the database are waited out."""
    end = time.monotonic() + seconds
    while True:
        rows: list[Row] = []
        try:
            rows = rig.rows(_TURNS, list(turns), list(turns))
        except psycopg.OperationalError:
            if time.monotonic() > end:
                raise
        if rows and (time.monotonic() > end or all(row["status"] in TERMINAL for row in rows)):
            return rows
        approve(rig)
        time.sleep(0.1)


def count_doubled(rig: Rig, figures: Figures, load: Load) -> None:
    """Runs that had their effect more than once, as the log has it at this moment."""
    turns = {str(row["id"]) for row in rig.rows(_TURNS, list(load.turns), list(load.turns))}
    for key, times in effect.logged(rig.home / EFFECTS_FILE).items():
        if times > 1 and key.turn in turns:
            figures.wrong("duplicated", f"{key} had its effect {times} times")


def _count_effects(
    rig: Rig, figures: Figures, turns: Sequence[Row], expected: int | None, may_be_unknown: Collection[Key]
) -> None:
    """Each effect that was asked for is in the log once, or its turn was told that nobody knows."""
    log = effect.logged(rig.home / EFFECTS_FILE)
    runs = rig.rows(_RUNS, [row["id"] for row in turns], list(effect.NAMES))
    if expected is not None and len(runs) != expected:
        figures.wrong("lost", f"{len(runs)} effects were asked for, {expected} wanted")
    for run in runs:
        key = Key(run["turn"], run["step"], run["ordinal"])
        if run["status"] == "unknown":
            figures.unknown += 1
            if key not in may_be_unknown:
                figures.wrong("wrongly_unknown", f"{key} had not been started, or its worker lived")
        elif run["status"] == "done" and log[key] == 0:
            figures.wrong("lost", f"{key} is told as done and had no effect")
        elif run["status"] != "done" and expected is not None:
            figures.wrong("lost", f"{key} is {run['status']}")


def _count_calls(rig: Rig, figures: Figures, turn: Row) -> None:
    """A call that was seen by the provider and made again is billed again; more than the rows say is a fault."""
    session = str(turn["session"])
    calls = rig.rows("select status from calls where session = %s", session)
    seen = rig.provider.ledger(session)
    settled = sum(call["status"] == "settled" for call in calls)
    figures.billed_again += max(0, len(seen) - settled - sum(call["status"] == "cut" for call in calls))
    if len(seen) > len(calls):
        figures.wrong("duplicated", f"the provider saw {len(seen)} calls of session {session}, {len(calls)} are booked")
    for call in calls:
        if call["status"] == "reserved":
            figures.wrong("lost", f"a call of session {session} is booked as under way")
    for call in seen:
        if call["extended"] is False:
            figures.wrong("duplicated", f"a request of session {session} does not extend the last one")

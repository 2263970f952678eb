"""What can be done to a worker from outside once it has announced where it is, and what it had in hand just then."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.rows import dict_row

from deploy.drill.effect import ONCE, Key
from deploy.drill.rig import Pause, Rig, Row, slack, until

_HELD = """
select t.id::text as turn, r.step, r.ordinal from turns t
left join tool_runs r on r.turn = t.id and r.status = 'started' and r.tool = any(%s)
where t.holder = %s and t.status = 'running' order by 1, 2, 3
"""
_STILL_S = 0.3


@dataclass(frozen=True, slots=True)
class InHand:
    """Of one worker at the moment it stopped: its turns, and the runs that may happen once between `started` and their
    result."""

    boot: str
    turns: frozenset[str]
    started: frozenset[Key]


def frozen(rig: Rig, pid: int) -> tuple[float, InHand]:
    """Stop it. Returns when that was, and what it had in hand: a statement on its way still counts."""
    worker = rig.one("select boot_id::text as boot from workers where pid = %s and stopped_at is null", pid)
    at = rig.kill(pid, signal.SIGSTOP)
    rows = _settled(lambda: rig.rows(_HELD, list(ONCE), worker["boot"]))
    started = frozenset(Key(row["turn"], row["step"], row["ordinal"]) for row in rows if row["step"] is not None)
    return at, InHand(worker["boot"], frozenset(row["turn"] for row in rows), started)


def _settled(read: Callable[[], list[Row]]) -> list[Row]:
    found, since = read(), time.monotonic()
    while time.monotonic() < since + _STILL_S:
        time.sleep(0.05)
        now = read()
        if now != found:
            found, since = now, time.monotonic()
    return found


def resumed(rig: Rig, hands: Collection[tuple[float, InHand]], seconds: float) -> list[float]:
    """Seconds from each blow until each turn ran again elsewhere, or came to an end or a rest. Misses those that did
    not within `seconds`: they are counted as hung where they are awaited."""
    waiting = {turn: (at, hand.boot) for at, hand in hands for turn in hand.turns}
    found: list[float] = []
    end = time.monotonic() + seconds * slack()
    query = (
        b"select id::text as turn, status, holder::text, extract(epoch from clock_timestamp())::float8 as now"
        b" from turns where id = any(%s::uuid[])"
    )
    with psycopg.connect(rig.facts["database_url"], autocommit=True) as connection:
        while waiting and time.monotonic() < end:
            for row in connection.cursor(row_factory=dict_row).execute(query, (list(waiting),)).fetchall():
                at, boot = waiting[row["turn"]]
                if (row["holder"] not in (None, boot)) or row["status"] not in ("queued", "running"):
                    found.append(row["now"] - at)
                    del waiting[row["turn"]]
            time.sleep(0.01)
    return found


def thaw(rig: Rig, pid: int, pause: Pause) -> None:
    rig.kill(pid, signal.SIGCONT)
    pause.go()


def steps_done(rig: Rig, turns: Collection[str]) -> Row | None:
    """How far a load has come; None while the database is away."""
    query = (
        "select coalesce(sum(step), 0)::int as steps, bool_and(status in ('done', 'failed', 'cancelled')) as ended"
        " from turns where id = any(%s::uuid[])"
    )
    try:
        return rig.one(query, list(turns))
    except psycopg.OperationalError:
        return None


def moving(rig: Rig, turns: Collection[str], seconds: float = 90.0) -> float:
    """Seconds until one of them commits a step, or all have ended."""
    began, first = time.monotonic(), steps_done(rig, turns)

    def again() -> Any:
        nonlocal first
        now = steps_done(rig, turns)
        first = first or now
        return now and first and (now["ended"] or now["steps"] > first["steps"])

    until(again, seconds * slack(), "another step")
    return time.monotonic() - began


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False

"""Three workers, one key, a provider that lets a limited number of calls through in any minute: what it refused by its
own ledger, and how much of its limit was used; the same after the fleet's memory of the key was flushed."""

from __future__ import annotations

import contextlib
import itertools
import sys
import time

import httpx

from tests.bench.figures import Figure
from tests.bench.house import House
from tests.chaos.rig import slack, until

PER_MINUTE = 50
MINUTES = 10.0
WORKERS, SLOTS = 3, 8
SESSIONS = 48
WAY = "window"
"""Stricter than what providers document: no sixty seconds hold more."""
MINUTE_S = 60.0
START_S = 120.0
"""Until the first call is at the provider, where a round begins."""


def measure(house: House) -> list[Figure]:
    house.rig.provider.post("limit", {"per_minute": PER_MINUTE, "way": WAY})
    house.script(steps=0)
    with house.workers(WORKERS, SLOTS):
        fed = _feed(house)
        first = until(lambda: _first(house), START_S * slack(), "the first call at the provider")
        found = _round(house, "from a start", first)
        flushed = time.time()
        house.rig.redis().flushall()
        found += _round(house, "after a flush", flushed)
        _drop(house, fed)
    return found


def _feed(house: House) -> list[str]:
    """More turns than the limit can serve in the time, over sessions enough to keep every slot busy."""
    wanted = int(2.5 * PER_MINUTE * MINUTES) + SESSIONS
    sessions = house.sessions(SESSIONS)
    turns: list[str] = []
    while len(turns) < wanted:
        turns += house.send(sessions, "one more")
    return turns


def _first(house: House) -> float | None:
    """When the first call was at the provider."""
    return min((call["started_wall"] for call in house.rig.provider.ledger()), default=None)


def _round(house: House, name: str, begin: float) -> list[Figure]:
    """Ten minutes by the provider's log, from `begin` on."""
    end = begin + MINUTES * MINUTE_S
    time.sleep(max(0.0, end - time.time()))
    calls = [call for call in house.rig.provider.ledger() if begin <= call["started_wall"] < end]
    at = sorted([begin, end, *(call["started_wall"] for call in calls)])
    silence = max(after - before for before, after in itertools.pairwise(at))
    refused = sum(call["status"] == 429 for call in calls)
    through = sum(call["status"] == 200 for call in calls)
    share = through / (PER_MINUTE * (end - begin) / MINUTE_S)
    waiting = house.rig.one("select count(*) as n from turns where status in ('queued', 'parked')")["n"]
    print(
        f"limits, {name}: {through} through, {refused} refused, {waiting} still wait, at most {silence:.1f} s silent",
        file=sys.stderr,
        flush=True,
    )
    note = (
        f"{through} calls in {MINUTES:g} minutes, {waiting} turns still waiting; {WORKERS} workers, {SLOTS} slots each;"
        f" longest silence {silence:.1f} s"
    )
    return [
        Figure(f"429s at {PER_MINUTE} calls a minute, {name}", float(refused), "", mark=2, note=note),
        Figure(f"of that limit used, {name}", share, "", mark=0.9, sense="at least"),
    ]


def _drop(house: House, turns: list[str]) -> None:
    """What still waits is not worth its minutes."""
    house.rig.provider.post("limit", {"per_minute": None})
    query = "select id from turns where id = any(%s::uuid[]) and finished_at is null order by seq desc"
    for row in house.rig.rows(query, turns):  # the last first: what a cancel lets through would be claimed
        with contextlib.suppress(httpx.HTTPStatusError):  # over by now
            house.rig.cancel(str(row["id"]))

"""A hundred children at once under a cap of one dollar on their parent's session, calls of unequal size, workers killed
at random: what the provider billed, by its own ledger, and what is booked, against the cap.

`./dev bench money [--runs N] [--children N] [--kills N] [--seed N] [--first N]`: fifty runs, ten a stack. A run is
made of its seed and number, so one is played again alone. Each says how far it is; it is not given up for being slow
but for standing still, and then it says who lives and what of that is in the logs.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import sys
import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

import psycopg

from tests.bench.figures import Figure, keep, show
from tests.bench.house import LIMIT, House
from tests.chaos.rig import Rig, Row, family, stack, until

RUNS = 50
SHORT = 3
"""Among all the other figures."""
CHILDREN = 100
KILLS = 2
A_STACK = 10
STARTS = 5
CAP = Decimal("1.00")
MODEL = "claude-haiku-5-5"
WORDS = (1_000, 3_000, 6_000, 7_500)
"""Of each answer, by child: tokens of output, about, so that calls cost from a twentieth of a cent to half of one."""
A_CALL = 20
STILL_S = 120.0
"""While a worker is ready: longer than any lease, look of the sweep or wait for a call of this drive."""
BOOT_S = 1_800.0
"""With none: those that were killed begin anew, which a machine that has much else to do takes minutes for."""
TELL_S = 15.0
WITH = """
with recursive tree(id, session) as (
  select id, session from turns where session = %s
  union select c.id, c.session from tree join turns c on c.parent = tree.id
)"""
BOOKED = f"""{WITH}
select coalesce(sum(coalesce(k.cost_usd, k.reserved_usd)), 0) as usd, count(*) as calls,
  count(*) filter (where k.status = 'lost') as lost, count(*) filter (where k.status = 'reserved') as open
from tree join calls k on k.turn = tree.id
"""  # noqa: S608 - texts of this module
MOVES = f"""{WITH}
select count(*) filter (where t.status = 'queued') as queued, count(*) filter (where t.status = 'running') as running,
  count(*) filter (where t.status = 'parked') as parked, count(*) filter (where t.parked_on = 'money') as short,
  count(*) filter (where t.finished_at is not null) as over, sum(t.step) as steps, sum(s.fence) as fences,
  (select count(*) from calls k join tree x on x.id = k.turn) as calls,
  (select count(*) from workers w where w.kind = 'worker' and w.stopped_at is null and not w.draining
    and w.lease_until > clock_timestamp()) as workers
from tree join turns t on t.id = tree.id join sessions s on s.id = t.session
"""  # noqa: S608 - texts of this module
LIVING = f"""{WITH}
select t.id, t.parent, t.status, t.class, t.parked_on, t.short_of, t.short_usd, t.wake_at, t.holder, t.attempts, t.step,
  t.children_open, t.error_code, t.queued_at, t.cap_usd, t.spent_usd, t.reserved_usd, t.children_usd,
  t.children_promised_usd, s.fence, w.pid, w.draining, w.stopped_at, w.lease_until
from tree join turns t on t.id = tree.id join sessions s on s.id = t.session left join workers w on w.boot_id = t.holder
where t.finished_at is null order by t.seq limit 20
"""  # noqa: S608 - texts of this module
SESSIONS = f"{WITH} select distinct session from tree"  # noqa: S608 - texts of this module
ROOT = "select status, error_code from turns where session = %s order by seq limit 1"
MADE = "select count(*) as n from turns c join turns p on p.id = c.parent where p.session = %s"


@dataclass(frozen=True, slots=True)
class Drive:
    children: int = CHILDREN
    kills: int = KILLS
    seed: int = 6


@dataclass(frozen=True, slots=True)
class Played:
    """`raised`: it waited for a person at the end, and went on when the cap was raised."""

    booked: Decimal
    billed: Decimal
    calls: int
    lost: int
    raised: bool
    seconds: float


@dataclass(slots=True)
class _Watch:
    """What was seen last of a tree, and since when it is so."""

    rig: Rig
    session: str
    name: str
    chance: random.Random
    blows: list[int]
    """After how many calls of the tree a worker is killed; each is taken out when it falls."""
    seen: Row = field(default_factory=dict[str, object])
    since: float = field(default_factory=time.monotonic)
    told: float = field(default_factory=time.monotonic)

    def quiet(self, most: int = 1) -> bool:
        """Nothing lives but at most so many, who wait for a person to raise a cap. Raises AssertionError where nothing
        has moved for long."""
        try:
            row = self.rig.one(MOVES, self.session)
        except psycopg.OperationalError:  # who asks may find the database busy: it is asked again
            return False
        if self.blows and row["calls"] >= self.blows[0] and _killed(self.rig, self.chance):
            self.blows.pop(0)
        now = time.monotonic()
        if row != self.seen:
            self.seen, self.since = row, now
        if now - self.told > TELL_S:
            self.told = now
            _say(f"{self.name}: {', '.join(f'{count} {what}' for what, count in row.items())}")
        live = row["queued"] + row["running"] + row["parked"]
        if live == row["short"] and live <= most:
            return True
        if now - self.since > (STILL_S if row["workers"] else BOOT_S):
            raise AssertionError(f"{self.name} stands still:\n{self._dump()}")
        time.sleep(0.1)
        return False

    def _dump(self) -> str:
        """Who lives, which processes there are, and the last lines of the logs that name one of them."""
        living = self.rig.rows(LIVING, self.session)
        lines = [str(self.seen), str(self.rig.facts["pids"]), *map(str, living)]
        for row in living:
            lines += self.rig.of_turn(str(row["id"]))[-12:]
        lines += [line for path in ("worker", "scheduler", "supervisor") for line in self._tail(path)]
        return "\n".join(lines)

    def _tail(self, name: str) -> list[str]:
        found = sorted((self.rig.home / "logs").glob(f"{name}*.log"))
        return [f"{path.stem}: {line}" for path in found for line in self.rig.log(path.stem).splitlines()[-30:]]


def measure(house: House) -> list[Figure]:
    return figures(played(Drive(), range(SHORT)))


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="./dev bench money", description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS, help="default %(default)s")
    parser.add_argument("--children", type=int, default=CHILDREN, help="default %(default)s")
    parser.add_argument("--kills", type=int, default=KILLS, help="workers a run; default %(default)s")
    parser.add_argument("--seed", type=int, default=6)
    parser.add_argument("--first", type=int, default=0, metavar="N", help="begin with run N")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep each run's figures")
    asked = parser.parse_args(argv)
    runs = range(asked.first, asked.first + asked.runs)
    load = os.getloadavg()[0]
    found = figures(played(Drive(asked.children, asked.kills, asked.seed), runs))
    show(found)
    if asked.json:
        keep(found, asked.json, {"load": load, "runs": asked.runs, "seed": asked.seed})
    return 0


def played(drive: Drive, runs: range) -> list[Played]:
    settings = {"PRINCIPAL_LIMIT": LIMIT, "LOG_LEVEL": "warning", "STRICT": 1, "MAX_OUTPUT_TOKENS": 8_000}
    found: list[Played] = []
    for first in range(runs.start, runs.stop, A_STACK):
        with _stack(settings) as rig:
            for number in range(first, min(first + A_STACK, runs.stop)):
                one = _run(rig, drive, number)
                found.append(one)
                _say(
                    f"money, run {number}: ${one.booked:.4f} booked, ${one.billed:.4f} billed, {one.calls} calls,"
                    f" {one.lost} lost, {'raised, ' if one.raised else ''}{one.seconds:.0f} s"
                )
    return found


@contextlib.contextmanager
def _stack(settings: Mapping[str, object]) -> Generator[Rig]:
    """A machine with much else to do may let one time out before it is up: then another one is begun."""
    with contextlib.ExitStack() as held:
        for _ in range(STARTS):
            try:
                rig = held.enter_context(stack(workers=3, concurrency=40, settings=settings))
            except AssertionError as error:
                _say(f"money: a stack did not start: {str(error)[-200:]}")
                continue
            yield rig
            return
        raise AssertionError(f"{STARTS} stacks did not start")


def figures(runs: Sequence[Played]) -> list[Figure]:
    booked, billed = max(one.booked for one in runs), max(one.billed for one in runs)
    calls, lost = sum(one.calls for one in runs), sum(one.lost for one in runs)
    return [
        Figure(
            f"children under ${CAP}, workers killed: spent + assumed, most of {len(runs)} runs",
            float(booked), "$", mark=float(CAP),
            note=f"{calls:,} calls, {lost} lost with their worker; billed by the provider at most ${billed:.4f};"
            f" raised to go on: {sum(one.raised for one in runs)}",
            detail={"booked": [float(one.booked) for one in runs], "billed": [float(one.billed) for one in runs],
                    "seconds": [round(one.seconds, 1) for one in runs]},
        )
    ]  # fmt: skip


def _run(rig: Rig, drive: Drive, number: int) -> Played:
    """Nothing of the tree is live afterwards."""
    began, chance = time.monotonic(), random.Random(f"{drive.seed}:{number}")
    session = _begun(rig, drive)
    # By how many calls there have been, not by seconds: a slow machine has done nothing yet after three of them.
    blows = sorted(chance.randint(2, 2 * drive.children) for _ in range(drive.kills))
    watch = _Watch(rig, session, f"run {number}", chance, blows)
    until(watch.quiet, 3_600, "every child at its end")
    row, root = rig.one(BOOKED, session), rig.one(ROOT, session)
    made = rig.one(MADE, session)["n"]
    assert not row["open"], row
    assert made == drive.children or root["error_code"] == "worker_lost_repeatedly", (made, root)
    sessions = {str(one["session"]) for one in rig.rows(SESSIONS, session)}
    ledger = [call for call in rig.provider.ledger() if call["session"] in sessions]
    billed = sum((Decimal(str(call["usd"] or 0)) for call in ledger), Decimal(0))
    assert row["usd"] <= CAP, f"${row['usd']} booked under a cap of ${CAP}"
    assert billed <= row["usd"], f"${billed} billed, ${row['usd']} booked"
    raised = _raise(rig, watch)
    return Played(row["usd"], billed, row["calls"], row["lost"], raised, time.monotonic() - began)


def _killed(rig: Rig, chance: random.Random) -> bool:
    """Whoever is written down may be gone by now, and another on its way."""
    alive = sorted({*rig.pids("worker")} & family(rig.process.pid))
    if not alive:
        return False
    with contextlib.suppress(ProcessLookupError, AssertionError):
        rig.kill(chance.choice(alive))
        return True
    return False


def _begun(rig: Rig, drive: Drive) -> str:
    """A session under the cap whose first turn makes the children and then spends what they leave and give back."""
    rig.provider.reset()
    for size, words in enumerate(WORDS):
        reply = {"text": "word " * words, "tools": [{"name": "list_files", "input": {"path": "."}}]}
        rig.provider.post("script", {"name": f"size{size}", "replies": [reply], "repeat": True})
    session = rig.session(model=MODEL, cap_usd=float(CAP))
    groups = [range(at, min(at + A_CALL, drive.children)) for at in range(0, drive.children, A_CALL)]
    tools = [
        {"name": "delegate_task", "input": {"background": True, "tasks": [_task(number) for number in group]}}
        for group in groups
    ]
    spending = {"text": "word " * WORDS[-1], "tools": [{"name": "list_files", "input": {"path": "."}}]}
    rig.script(session, [spending], repeat=True)
    rig.script(session, [{"tools": tools}])  # before what is there
    rig.send(session, "spend it")
    return session


def _task(number: int) -> dict[str, str]:
    """Where its words come from is named in its goal. All goals together are one answer of the parent's."""
    return {"goal": f"part {number}, script:size{number % len(WORDS)}"}


def _raise(rig: Rig, watch: _Watch) -> bool:
    """Whether somebody waited for money. The cap is raised, and they end with an answer."""
    if not rig.one(MOVES, watch.session)["short"]:
        return False
    rig.script(watch.session, [{"text": "so"}], repeat=True)
    rig.http.patch(f"/v1/sessions/{watch.session}", json={"cap_usd": 5}).raise_for_status()
    until(lambda: watch.quiet(0), 3_600, "what waited for money")
    return True


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)

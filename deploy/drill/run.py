"""`nightshift drill`: every point, so many runs each; a table, and exit 1 where anything was lost, doubled, hung or
told as unknown without need."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import groupby

from deploy.drill import freezing, killing, lanes, leader, outages, table
from deploy.drill.effect import ASKED
from deploy.drill.figures import Figures
from deploy.drill.rig import Rig, stack

UP = ("deploy.drill.up",)
RUNS = 1
MINUTE = "broker:minute"
SHARED = 5
_LIVE: Mapping[str, Callable[[Rig, Figures], None]] = {**killing.ROWS, **leader.ROWS, **outages.ROWS}
_STOPS = {f"stop:{point}": point for points in freezing.GROUPS for point in points}
POINTS = (*killing.ROWS, *_STOPS, *leader.ROWS, *outages.ROWS, outages.SWALLOWED)


def main(argv: list[str]) -> int:
    asked = _parse(argv)
    chosen = [point for point in POINTS if not asked.point or any(_is(point, name) for name in asked.point)]
    chosen = [point for point in chosen if not any(_is(point, name) for name in asked.skip)]
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # asked to end, we stop our stack first
    figures = {point: Figures(point) for point in chosen}
    if not asked.json:
        say(f"drill of {len(chosen)} points, {asked.runs} runs each; a lease is {asked.lease:g} s")
    began = time.monotonic()
    try:
        if asked.lanes > 1:
            options = ("--runs", str(asked.runs), "--lease", f"{asked.lease:g}")
            lanes.drill(figures, units(chosen), asked.lanes, options=options)
        else:
            _drill(figures, asked.runs, asked.lease)
    except KeyboardInterrupt:
        say("interrupted; the stack is stopped")
        return 130
    if asked.json:
        sys.stdout.write(json.dumps([one.as_json() for one in figures.values()], indent=2) + "\n")
    else:
        sys.stdout.write("\n".join(table.lines(figures.values())) + "\n")
    clean = all(one.clean and one.runs == asked.runs for one in figures.values())
    if not asked.json:
        say(f"{'clean' if clean else 'NOT clean'} after {time.monotonic() - began:.0f} s")
    return 0 if clean else 1


def _is(point: str, name: str) -> bool:
    return point == name or _kind(point) == name


def _parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="nightshift drill",
        description="A stack of its own under load, hurt from outside at every point of a step.",
        epilog=f"points: {', '.join(POINTS)}",
    )
    parser.add_argument("--runs", type=int, default=RUNS, metavar="N", help="of each point (%(default)s)")
    parser.add_argument(
        "--point", action="append", metavar="P", help="this one, or all of its kind (kill, stop); again for more"
    )
    parser.add_argument("--skip", action="append", default=[], metavar="P", help="not this one, or none of its kind")
    parser.add_argument("--lease", type=float, default=15.0, metavar="S", help="seconds of a worker's lease (15)")
    parser.add_argument("--lanes", type=int, default=1, metavar="N", help="so many stacks at once (1)")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args(argv)
    for name in [*(asked.point or ()), *asked.skip]:
        if not any(_is(point, name) for point in POINTS):
            parser.error(f"no point {name}; there are {', '.join(POINTS)}")
    if asked.runs < 1 or not 1 <= asked.lease <= 60 or not 1 <= asked.lanes <= 16:
        parser.error("at least one run, a lease of 1 to 60 s, and 1 to 16 lanes")
    return asked


def units(chosen: Sequence[str]) -> list[list[str]]:
    """What shares a stack: points of a kind, a few of them. The longest first: nothing long is left for the end, when
    its lane would be the only one."""
    units = [[f"stop:{point}" for point in group if f"stop:{point}" in chosen] for group in freezing.GROUPS]
    kinds = groupby((point for point in chosen if point not in _STOPS and point != MINUTE), _kind)
    units += [points[at : at + SHARED] for _, points in ((kind, list(found)) for kind, found in kinds)
              for at in range(0, len(points), SHARED)]  # fmt: skip
    return [[MINUTE]] * (MINUTE in chosen) + sorted(filter(None, units), key=len, reverse=True)


def _kind(point: str) -> str:
    return point.partition(":")[0]


def say(text: str) -> None:
    """Progress, to stderr: stdout is the table's."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def _drill(figures: Mapping[str, Figures], runs: int, lease_s: float) -> None:
    settings = {"approve_tools": ASKED, "lease_s": lease_s, "heartbeat_s": lease_s / 3}
    swallowing = outages.Swallowing()
    rows: dict[str, Callable[[Rig, Figures], None]] = {**_LIVE, outages.SWALLOWED: swallowing.run}
    live = [point for point in figures if point in rows]
    if live:
        workers = killing.WORKERS
        with stack(workers=workers, concurrency=6, schedulers=2, beats=2, settings=settings, up=UP) as rig:
            for point in live:
                for run in range(runs):
                    _once(f"{point} {run + 1}/{runs}", [figures[point]], partial(rows[point], rig, figures[point]))
            swallowing.end()
    groups = [[p for p in group if f"stop:{p}" in figures] for group in freezing.GROUPS]
    if any(groups):
        table = {point: figures[f"stop:{point}"] for group in groups for point in group}
        workers = freezing.WORKERS
        with stack(workers=workers, concurrency=1, schedulers=2, beats=2, settings=settings, up=UP) as rig:
            for group in filter(None, groups):
                for run in range(runs):
                    name = f"stop:{','.join(group)} {run + 1}/{runs}"
                    hurt = [table[point] for point in group]
                    _once(name, hurt, partial(freezing.group, group, rig, table, lease_s))


def _once(name: str, hurt: Sequence[Figures], work: Callable[[], None]) -> None:
    """One run. What does not come true within its time hangs, and is counted; the next point has its turn anyway."""
    began = time.monotonic()
    before = [len(one.told) for one in hurt]
    try:
        work()
    except AssertionError as error:
        for one in hurt:
            one.wrong("hung", f"{error} {' '.join(getattr(error, '__notes__', ()))}")
    told = [text for one, count in zip(hurt, before, strict=True) for text in one.told[count:]]
    resumes = [f"{value:.2f}" for one in hurt for value in one.resumes[-3:]]
    say(f"{name}: {time.monotonic() - began:.1f} s; ran again after {', '.join(resumes) or '?'}")
    for text in told:
        say(f"  {text}")

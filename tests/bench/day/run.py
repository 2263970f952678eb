"""`./dev bench day [--quick] [--only PART…]`: the day and its three companions, played for each window and judged.

A window is a phase of its own: the models at Opus 5.5 prices hold a million tokens, and a worker of ours makes that
200,000 (worker.py). Within a phase all sessions share one clock and one stack; the sparse chat, which wants the
scheduler's own steps of the clock for its pings, comes after the others. What a session is said to have paid is
recomputed as if it had been alone, so that no other kept its front warm.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import orjson

from tests.bench import figures as table
from tests.bench.day import bill, lookback, plan, report, trigger
from tests.bench.day.drive import Run, Stage, staged
from tests.bench.day.report import Judged
from tests.bench.figures import Figure
from tests.bench.house import LIMIT, House
from tests.chaos.rig import stack
from tests.ground import until

MODEL = "claude-opus-5-5"
OTHERS = ("claude-fable-5-2", "claude-opus-5")
"""The day is played for them too: a read costs 0.025 and 0.1 of the input there, 0.05 on the first."""
WINDOWS = (1_000_000, 200_000)
SEEDS = 5
PARTS = (*plan.GENERATORS, "models", "replay", "lookback", "trigger")


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="./dev bench day", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one seed, one model")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument(
        "--only", nargs="+", choices=PARTS, default=PARTS, metavar="PART", help=f"of {', '.join(PARTS)}"
    )
    parser.add_argument("--windows", nargs="+", type=int, default=WINDOWS)
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep every figure, with each conversation's own")
    asked = parser.parse_args(argv)
    seeds = range(1, 2 if asked.quick else asked.seeds + 1)
    parts = [part for part in asked.only if part != "models" or not asked.quick]
    began = time.monotonic()
    judged: list[Judged] = []
    found: list[Figure] = []
    settings = {"PRINCIPAL_LIMIT": LIMIT, "LOG_LEVEL": "warning", "STRICT": 0, "TEST_CLOCK": 1}
    with stack(workers=0, settings=settings) as rig:
        until(lambda: rig.http.get("/healthz").status_code == 200, 20, "the API")
        house = House(rig)
        differ = 0
        for window in asked.windows:
            wrong, more = _window(house, window, parts, seeds, judged)
            differ += wrong
            found += more
        if "lookback" in parts:
            found += lookback.measure(house)
        if "trigger" in parts:
            found += trigger.measure(house)
    report.show(judged)
    found = [*report.figures(judged, differ), *found]
    table.show(found)
    print(f"{sum(sum(one.calls.values()) for one in judged)} calls; {time.monotonic() - began:.0f} s in all")
    if asked.json:
        kept = [{"name": one.name, "value": one.value, "judged": one.judged, "mark": one.mark, "met": one.met,
                 "note": one.note, **one.detail} for one in found]  # fmt: skip
        asked.json.write_bytes(orjson.dumps(kept, option=orjson.OPT_INDENT_2))
    return 0


def _window(
    house: House, window: int, parts: Sequence[str], seeds: Sequence[int], judged: list[Judged]
) -> tuple[int, list[Figure]]:
    """Play and judge everything of one window. How many bills differ from the ledger's, and figures of its own."""
    names = [name for name in plan.GENERATORS if name in parts]
    models = (MODEL, *OTHERS) if "models" in parts else (MODEL,)
    runs = [
        Run(plan.GENERATORS[name](seed), model, keep_warm=name == "sparse")
        for name in names
        for model in (models if name == "day" else (MODEL,))
        for seed in seeds
    ]
    found: list[Figure] = []
    differ = 0
    for batch in ([run for run in runs if not run.keep_warm], [run for run in runs if run.keep_warm]):
        if not batch:
            continue
        at = time.monotonic()
        with staged(house, dict.fromkeys(models, window)) as stage:
            stage.play(batch)
            differ += len(bill.compare(stage.book, stage.book.bill_all()))
            judged += [report.judge(stage, run, window) for run in batch]
            if "replay" in parts and batch[0].plan.name == "day":
                found.append(_replayed(stage, batch[0], window))
        calls = sum(len(run.calls) for run in batch)
        told = f"{window:,}: {len(batch)} conversations, {calls} calls, {time.monotonic() - at:.0f} s"
        print(told, file=sys.stderr, flush=True)
    return differ, found


def _replayed(stage: Stage, run: Run, window: int) -> Figure:
    count, wrong = stage.replays(run)
    return Figure(
        f"day, {window // 1000:,} k: calls that replay does not rebuild byte for byte",
        len(wrong),
        f"of {count}",
        mark=0,
    )

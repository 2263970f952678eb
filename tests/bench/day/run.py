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
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import partial
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
APART: Mapping[str, Callable[[House], list[Figure]]] = {"lookback": lookback.measure, "trigger": trigger.measure}
PARTS = (*plan.GENERATORS, "models", "replay", *APART)


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
        todo: list[tuple[str, Callable[[], list[Figure]]]] = [
            (f"{window:,} tokens", partial(_window, house, window, parts, seeds, judged)) for window in asked.windows
        ]
        todo += [(name, partial(made, house)) for name, made in APART.items() if name in parts]
        broken: list[str] = []
        for name, work in todo:
            try:
                found += work()
            except Exception:  # noqa: BLE001 - one that breaks must not cost the figures of the others; the exit code tells
                broken.append(name)
                traceback.print_exc()
    if judged:
        report.show(judged)
    found = [*report.figures(judged), *found]
    table.show(found)
    print(f"{sum(sum(one.calls.values()) for one in judged)} calls; {time.monotonic() - began:.0f} s in all")
    if asked.json:
        kept = [{"name": one.name, "value": one.value, "judged": one.judged, "mark": one.mark, "met": one.met,
                 "note": one.note, **one.detail} for one in found]  # fmt: skip
        asked.json.write_bytes(orjson.dumps(kept, option=orjson.OPT_INDENT_2))
    if broken:
        print(f"broken, without a figure: {', '.join(broken)}")
    return 1 if broken else 0


def _window(
    house: House, window: int, parts: Sequence[str], seeds: Sequence[int], judged: list[Judged]
) -> list[Figure]:
    """Play and judge everything of one window; figures that are of the window and not of a conversation."""
    names = [name for name in plan.GENERATORS if name in parts]
    models = (MODEL, *OTHERS) if "models" in parts else (MODEL,)
    runs = [
        Run(plan.GENERATORS[name](seed), model, keep_warm=name == "sparse")
        for name in names
        for model in (models if name == "day" else (MODEL,))
        for seed in seeds
    ]
    found: list[Figure] = []
    for batch in ([run for run in runs if not run.keep_warm], [run for run in runs if run.keep_warm]):
        if not batch:
            continue
        at = time.monotonic()
        with staged(house, dict.fromkeys(models, window)) as stage:
            stage.play(batch)
            judged += [report.judge(stage, run, window) for run in batch]
            found.append(
                _compared(stage, f"{window // 1000:,} k, {' and '.join(sorted({run.plan.name for run in batch}))}")
            )
            if "replay" in parts and batch[0].plan.name == "day":
                found.append(_replayed(stage, batch[0], window))
        calls = sum(len(run.calls) for run in batch)
        told = f"{window:,}: {len(batch)} conversations, {calls} calls, {time.monotonic() - at:.0f} s"
        print(told, file=sys.stderr, flush=True)
    return found


def _compared(stage: Stage, title: str) -> Figure:
    """The script's bill beside the provider's ledger and the product's own books, over all calls of a phase."""
    bills = stage.book.bill_all()
    differ = bill.compare(stage.book, bills)
    calls = [stage.book.calls[index] for index in bills]
    ours = sum(float(call.facts["cost_usd"] or 0) for call in calls)
    told = sum(call.facts["usd"] for call in calls)
    return Figure(
        f"{title}: calls whose bill from the body is not the ledger's", len(differ), f"of {len(bills)}", mark=0,
        note="; ".join([f"ledger {told:.4f} $, our books {ours:.4f} $", *differ[:2]]),
    )  # fmt: skip


def _replayed(stage: Stage, run: Run, window: int) -> Figure:
    count, wrong = stage.replays(run)
    return Figure(
        f"day, {window // 1000:,} k: calls that replay does not rebuild byte for byte",
        len(wrong),
        f"of {count}",
        mark=0,
    )

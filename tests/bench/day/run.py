"""`./dev bench day [--quick] [--only PART…] [--jobs N]`: the day and its three companions, in each window, judged.

The models at Opus 5.5 prices hold a million tokens, and a worker of ours makes that 200,000 (worker.py). The seeds of
one generator in one window are a phase: sessions that share one clock and one stack, and mostly wait for one another,
so phases are played side by side. What a session is said to have paid is recomputed as if it had been alone, so that
no other kept its front warm.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import orjson

from tests.bench import figures as table
from tests.bench.day import bill, books, lookback, plan, report, trigger
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
JOBS = 2
APART: Mapping[str, Callable[[House], list[Figure]]] = {"lookback": lookback.measure, "trigger": trigger.measure}
PARTS = (*plan.GENERATORS, "models", "replay", *APART)


@dataclass(frozen=True, slots=True)
class Phase:
    """What is played on a stack of its own: the seeds of one generator in one window, or a figure that is apart."""

    name: str
    window: int
    seeds: tuple[int, ...] = ()
    models: tuple[str, ...] = (MODEL,)
    replay: bool = False

    @property
    def title(self) -> str:
        return f"{self.name}, {self.window // 1000:,} k" if self.window else self.name


def phases(parts: Sequence[str], windows: Sequence[int], seeds: Sequence[int]) -> list[Phase]:
    """The longest first, so that no core has nothing to do at the end."""
    models = (MODEL, *OTHERS) if "models" in parts else (MODEL,)
    found = [
        Phase(name, window, tuple(seeds), models if name == "day" else (MODEL,), "replay" in parts and name == "day")
        for name in plan.GENERATORS
        for window in windows
        if name in parts
    ]
    return found + [Phase(name, 0) for name in APART if name in parts]


def main(argv: list[str]) -> int:
    asked = arguments(argv)
    seeds = range(1, 2 if asked.quick else asked.seeds + 1)
    parts = [part for part in asked.only if part != "models" or not asked.quick]
    began = time.monotonic()
    judged: list[Judged] = []
    found: list[Figure] = []
    broken: list[str] = []
    # Spawned: each phase begins as a program of its own would, whatever this one has open.
    with ProcessPoolExecutor(max(1, asked.jobs), get_context("spawn")) as pool:
        playing = {pool.submit(played, phase): phase for phase in phases(parts, asked.windows, seeds)}
        for coming in as_completed(playing):
            try:
                ones, figures = coming.result()
            except Exception:  # noqa: BLE001 - one that breaks must not cost the figures of the others; the exit code tells
                broken.append(playing[coming].title)
                traceback.print_exc()
                continue
            table.show([*report.figures(ones), *figures])  # a run that is ended early has told what it knew
            sys.stdout.flush()
            judged += ones
            found += figures
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


def arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev bench day", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one seed, one model")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--jobs", type=int, default=JOBS, help="stacks side by side; default %(default)s")
    parser.add_argument(
        "--only", nargs="+", choices=PARTS, default=PARTS, metavar="PART", help=f"of {', '.join(PARTS)}"
    )
    parser.add_argument("--windows", nargs="+", type=int, default=WINDOWS)
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep every figure, with each conversation's own")
    return parser.parse_args(argv)


def played(phase: Phase) -> tuple[list[Judged], list[Figure]]:
    """One phase on a stack of its own: each conversation, judged, and figures that are of the phase as a whole."""
    began = time.monotonic()
    settings = {"PRINCIPAL_LIMIT": LIMIT, "LOG_LEVEL": "warning", "STRICT": 0, "TEST_CLOCK": 1}
    with stack(workers=0, settings=settings) as rig:
        until(lambda: rig.http.get("/healthz").status_code == 200, 60, "the API")
        house = House(rig)
        if phase.name in APART:
            return [], APART[phase.name](house)
        runs = [
            Run(plan.GENERATORS[phase.name](seed), model, keep_warm=phase.name == "sparse")
            for model in phase.models
            for seed in phase.seeds
        ]
        before = books.ours(rig.http)
        with staged(house, dict.fromkeys(phase.models, phase.window)) as stage:
            stage.play(runs)
            took = time.monotonic() - began
            found = [_compared(stage, phase.title), *_booked(stage, phase.title, before)]
            if phase.replay:
                found.append(_replayed(stage, runs[0], phase.window))
    judged = [report.judge(stage.book, run, phase.window) for run in runs]
    calls = sum(len(run.calls) for run in runs)
    judging = time.monotonic() - began - took
    told = f"{phase.title}: {len(runs)} conversations, {calls} calls, {took:.0f} s, {judging:.0f} s to judge"
    print(told, file=sys.stderr, flush=True)
    return judged, found


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


def _booked(stage: Stage, title: str, before: books.Books) -> list[Figure]:
    """`ledger` beside the provider's, every bucket, children, summaries and pings included: in all, and for each
    purpose by itself."""
    after, theirs = books.ours(stage.rig.http), stage.rig.provider.ledger()
    wrong = books.differ(before.total, after.total, books.theirs(theirs))
    rows = stage.rig.rows("select request_id, purpose from calls where request_id is not null")
    of = books.apart(before, after, theirs, {row["request_id"]: row["purpose"] for row in rows})
    kinds = f"of {len(books.BUCKETS) + 1}"
    name = f"{title}: buckets in which `ledger` is not the provider's"
    return [
        Figure(name, len(wrong), kinds, mark=0, note="; ".join(wrong)),
        *(
            Figure(f"{name}, {one.purpose}", len(one.wrong), kinds, mark=0, note="; ".join([str(one), *one.wrong]))
            for one in of
        ),
    ]


def _replayed(stage: Stage, run: Run, window: int) -> Figure:
    count, wrong = stage.replays(run)
    return Figure(
        f"day, {window // 1000:,} k: calls that replay does not rebuild byte for byte",
        len(wrong),
        f"of {count}",
        mark=0,
    )

"""What a played conversation cost and lost, as figures beside their marks (issue 4, "Show it" 1, 6)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any

from rich.console import Console
from rich.table import Table

from tests.bench.day import bill, counterfactual, peer
from tests.bench.day.bill import Book
from tests.bench.day.drive import Answer, Run, answers, broken
from tests.bench.figures import Figure

RATIO = {"day": 0.42, "sparse": 0.32, "night": 0.40, "team": 0.50}
"""Of the never-edited bill with one-hour marks, the mean of all seeds."""
MARKED = "claude-opus-5-5"
"""The marks of a bill are for its prices."""
ANY_SEED, OF_SEEDS_DEFAULTS, COMPACTIONS = 0.50, 0.30, 3
PROJECTED, ONE_CALL = 0.70, 0.95
BUCKETS = ("input", "read", "write_5m", "write_1h", "output")


@dataclass(frozen=True, slots=True)
class Judged:
    """One conversation. Dollars; the conversation's own are recomputed from its bodies, as if it had been alone."""

    name: str
    seed: int
    model: str
    window: int
    calls: Counter[str]
    paid: float
    parts: dict[str, float]
    never_1h: float
    never_5m: float
    seeds: float
    released: float
    uncached: float
    bound: float
    peak: int
    unedited: int
    compactions: int
    prunes: Counter[str]
    seeds_compactions: int
    broken: list[int]
    failed: list[str]
    booked: float
    told: float
    answers: list[Answer]
    kept: int
    cut: int

    @property
    def ratio(self) -> float:
        return self.paid / self.never_1h


def judge(book: Book, run: Run, window: int) -> Judged:
    """Everything about one run; the simulations are of bill.py's cache model."""
    model = run.model
    line = counterfactual.unedited(book, run.main, run.results)
    real = counterfactual.alone(book, run.calls)
    seeds = peer.simulate(book, line, window, released=False)
    released = peer.simulate(book, line, window, released=True)

    def usd(bills: Sequence[bill.Bill]) -> float:
        return counterfactual.dollars(bills, model)

    return Judged(
        name=run.plan.name,
        seed=run.plan.seed,
        model=model,
        window=window,
        calls=Counter(str(one.facts["purpose"]) for one in run.calls),
        paid=usd(real),
        parts=bill.parts(real, model),
        never_1h=usd(counterfactual.never_edited(book, line, "1h")),
        never_5m=usd(counterfactual.never_edited(book, line, "5m")),
        seeds=usd(seeds.bills),
        released=usd(released.bills),
        uncached=usd(counterfactual.uncached(book, line)),
        bound=usd(counterfactual.lower_bound(book, line)),
        peak=max(one.prompt for one in real),
        unedited=counterfactual.prompts(book, line)[-1],
        compactions=sum(one["kind"] == "summary" for one in run.edits),
        prunes=Counter(one["cause"] for one in run.reductions if one["decision"] == "prune"),
        seeds_compactions=seeds.compactions,
        broken=broken(run),
        failed=[f"{row['error_code']}: {row['error_text']}" for row in run.failed],
        booked=sum(float(one.facts["cost_usd"] or 0) for one in run.calls),
        told=sum(one.facts["usd"] for one in run.calls),
        answers=answers(run),
        kept=run.kept,
        cut=run.cut,
    )


def figures(judged: Sequence[Judged]) -> list[Figure]:
    """For each generator, model and window: what it cost beside its mark, what was broken, what was lost."""
    found: list[Figure] = []
    groups: dict[tuple[str, str, int], list[Judged]] = {}
    for one in judged:
        groups.setdefault((one.name, one.model, one.window), []).append(one)
    for (name, model, window), ones in groups.items():
        title = f"{name}, {model}, {window // 1000:,} k"
        found += _of_group(title, name, window, ones, marked=model == MARKED)
    return found


def _of_group(title: str, name: str, window: int, ones: Sequence[Judged], *, marked: bool) -> list[Figure]:
    ratios = [one.ratio for one in ones]
    paid = mean(one.paid for one in ones)
    spread = ", ".join(f"{ratio:.2f}" for ratio in ratios)
    compactions = max(one.compactions for one in ones)
    failed = [why for one in ones for why in one.failed]
    pruned = sum((one.prunes for one in ones), Counter[str]())
    found = [
        Figure(
            f"{title}: the bill", paid, "$", mean(one.never_1h for one in ones), "never edited, 1 h",
            mark=RATIO[name] if marked else None,
            judged=mean(ratios), note=f"each seed {spread}", detail={"runs": [_detail(one) for one in ones]},
        ),
        Figure(
            f"{title}: beside the seeds' defaults, simulated", paid, "$", mean(one.seeds for one in ones), "seeds'",
            mark=OF_SEEDS_DEFAULTS if marked and name == "day" and window >= 1_000_000 else None,
            judged=mean(one.paid / one.seeds for one in ones),
            note=f"as released {mean(one.released for one in ones):.2f} $, "
            f"{mean(one.seeds_compactions for one in ones):.1f} compactions",
        ),
        Figure(
            f"{title}: compactions, the most", compactions, "", mark=COMPACTIONS,
            note=f"prunes of all seeds {dict(pruned)}; peak {max(one.peak for one in ones):,} tokens of "
            f"{max(one.unedited for one in ones):,}",
        ),
        Figure(
            f"{title}: broken prefixes inside epochs", sum(len(one.broken) for one in ones), "", mark=0,
            note=f"{len(failed)} turns failed {sorted(set(failed))[:2]}",
        ),
        Figure(
            f"{title}: results of which a part is nowhere", sum(one.cut for one in ones), "", mark=0,
            note=f"{sum(one.kept for one in ones)} are kept whole behind a preview",
        ),
    ]  # fmt: skip
    if name == "day":
        limit = ANY_SEED if marked else None
        found.insert(1, Figure(f"{title}: the worst seed", max(ratios), "of never edited, 1 h", mark=limit))
    return found + _lost(title, [answer for one in ones for answer in one.answers])


def _lost(title: str, asked: Sequence[Answer]) -> list[Figure]:
    if not asked:
        return []
    whole = len(asked)
    seen = sum(one.right and not one.calls for one in asked)
    near = sum(one.right and one.calls <= 1 for one in asked)
    lost = [one for one in asked if not one.right]
    without = sum(one.right and not one.calls and not one.by_line for one in asked)
    ways = Counter(one.tools[-1] for one in asked if one.right and one.tools)
    by_place = Counter(one.fact.where for one in asked)
    at_once = Counter(one.fact.where for one in asked if one.right and not one.calls)
    return [
        Figure(
            f"{title}: facts answered from the projection", seen / whole, f"of {whole}", mark=PROJECTED,
            sense="at least",
            note=", ".join(f"{at_once[where]} of {count} {where}" for where, count in by_place.items())
            + f"; {without / whole:.2f} without the lines that stubs keep",
        ),
        Figure(
            f"{title}: within one further call", near / whole, f"of {whole}", mark=ONE_CALL, sense="at least",
            note=f"found by {dict(ways)}",
        ),
        Figure(
            f"{title}: lost to all ways", len(lost), "", mark=0,
            note="; ".join(
                f"{one.fact.subject} ({one.fact.where}; {', '.join(one.tools)}: {one.told})" for one in lost[:3]
            ),
        ),
    ]  # fmt: skip


def _detail(one: Judged) -> dict[str, Any]:
    return {
        "seed": one.seed, "calls": dict(one.calls), "paid": one.paid, "parts": one.parts, "ratio": one.ratio,
        "never_1h": one.never_1h, "never_5m": one.never_5m, "seeds": one.seeds, "released": one.released,
        "uncached": one.uncached, "bound": one.bound, "peak": one.peak, "unedited": one.unedited,
        "compactions": one.compactions, "prunes": dict(one.prunes), "failed": one.failed, "booked": one.booked,
        "told": one.told, "kept": one.kept, "cut": one.cut,
        "answers": [
            {"subject": it.fact.subject, "where": it.fact.where, "right": it.right, "tools": it.tools,
             "by_line": it.by_line, "told": it.told}
            for it in one.answers
        ],
    }  # fmt: skip


def show(judged: Sequence[Judged]) -> None:
    """Each conversation's bill by bucket beside what it would have been."""
    table = Table(
        "conversation", "calls", *BUCKETS, "paid $", "never edited 1 h*", "5 m*", "seeds'*", "released*", "uncached*",
        "lower bound*", "peak k of k", title="* simulated on the unedited transcript, rebuilt from the captured bodies",
    )  # fmt: skip
    for one in judged:
        table.add_row(
            f"{one.name} {one.seed} {one.model.removeprefix('claude-')} {one.window // 1000} k",
            " ".join(f"{number} {purpose}" for purpose, number in one.calls.items()),
            *(f"{one.parts[name]:.2f}" for name in BUCKETS), f"{one.paid:.2f}",
            f"{one.never_1h:.2f} ({one.ratio:.2f})", f"{one.never_5m:.2f}", f"{one.seeds:.2f}", f"{one.released:.2f}",
            f"{one.uncached:.2f}", f"{one.bound:.2f}", f"{one.peak // 1000} of {one.unedited // 1000}",
        )  # fmt: skip
    Console(width=210).print(table)

"""Owns what a demo prints at its end: the brief, what was read, the bill, where everything is, how to look further."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

from api.cli import safe, screen
from api.cli.ledger import calls_table
from deploy.demo.job import Run
from deploy.demo.progress import Progress
from deploy.demo.stack import Stack

BUCKETS = ("input", "cache_read", "cache_write", "output")
MOST_READ = 40


def total(calls: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Tokens by bucket and dollars. One unknown price makes the sum unknown: a part of a bill is not a bill."""
    tokens, cost, known = dict.fromkeys(BUCKETS, 0), Decimal(0), True
    for call in calls:
        found: dict[str, int] = call.get("tokens") or {}
        for name in BUCKETS:
            tokens[name] += found.get(name) or 0
        known = known and call.get("cost_usd") is not None
        cost += Decimal(str(call.get("cost_usd") or 0))
    return {"tokens": tokens, "cost_usd": float(cost) if known else None}


def as_json(stack: Stack, run: Run, progress: Progress, seconds: float) -> dict[str, Any]:
    return {
        "brief": run.turn["answer"],
        "rehearsal": stack.is_rehearsal,
        "seconds": round(seconds, 2),
        "stack_started_s": round(stack.started_s, 2),
        "read": list(progress.read),
        "tools": progress.tools,
        "calls": run.all_calls,
        "children": [
            {"number": one.child.number, "title": one.child.title, "turn": one.turn, "calls": len(one.calls)}
            for one in run.children
        ],
        **total(run.all_calls),
        "turn": run.turn,
        "session": run.session,
        "file": str(run.file),
        "home": str(stack.home),
        "logs": str(stack.logs),
    }


def show(stack: Stack, run: Run, progress: Progress, seconds: float, *, keep: bool) -> None:
    _title("The brief")
    screen.say(str(run.turn["answer"]))
    _title("What was read")
    counts = ", ".join(f"{name} ({count})" for name, count in progress.tools.items()) or "nothing: no tool was called"
    screen.say(counts)
    for path in list(progress.read)[:MOST_READ]:
        screen.say(f"  {safe.line(path)}")
    if len(progress.read) > MOST_READ:
        screen.say(f"  … and {len(progress.read) - MOST_READ} more")
    _title("The bill")
    calls_table(run.calls)
    for one in run.children:
        screen.say(f"\nagent {one.child.number}: {safe.line(one.child.title, 80)}")
        calls_table(one.calls)
    screen.say()
    _sum(stack, run)
    _title("Where it is")
    _places(stack, run, keep=keep)
    screen.say(
        f"\n{seconds:.1f} s in all" + (f", {stack.started_s:.1f} s of them to start the stack" if stack.is_ours else "")
    )


def _sum(stack: Stack, run: Run) -> None:
    calls = run.all_calls
    summed = total(calls)
    tokens = " + ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in summed["tokens"].items())
    of = f" of {1 + len(run.children)} agents" if run.children else ""
    screen.say(f"{len(calls)} calls{of}, {tokens} tokens = {screen.money(summed['cost_usd'])}")
    if stack.is_rehearsal:
        screen.say(
            f"This is the rehearsal provider's bill, at the prices of {run.session.get('model')}: nothing was spent and"
            " no model wrote this.\nWith ANTHROPIC_API_KEY set, the same command uses the real one."
        )


def _places(stack: Stack, run: Run, *, keep: bool) -> None:
    stays = keep or not stack.is_ours
    rows: list[tuple[str, str | Path]] = [
        ("brief", run.file),
        ("session", str(run.session["id"])),
        ("turn", str(run.turn["id"])),
        (
            "stack",
            f"{stack.home} ({'still up: ./dev down stops it' if stays else 'stopped; ./dev up starts it again'})",
        ),
        ("logs", stack.logs),
    ]
    for name, value in rows:
        screen.say(f"{name:<8} {value}")
    if not stays:
        screen.say("\nAfter `./dev up`, or with --keep:")
    else:
        screen.say("\nTo look further:")
    for words in (
        f"show {run.session['id']}",
        f"replay {run.turn['id']} --calls",
        f"replay {run.turn['id']} --step 1",
        f'send "what is due first?" --session {run.session["id"]} --wait',
        "ledger --by job",
    ):
        screen.say(f"  ./dev nightshift {words}")


def _title(text: str) -> None:
    screen.say(f"\n── {text} {'─' * (72 - len(text))}")

"""Owns `ledger` and `replay`: what was spent, as a table, CSV, bars; and the exact bytes of what was sent."""

from __future__ import annotations

import argparse
import csv
import shutil
import sys
from decimal import Decimal
from typing import Any

from api.cli import pages, plot, reconcile, safe, screen
from api.cli.client import Client
from api.cli.exits import Exit, Stop

_COLUMNS = ("calls", "input", "output", "cache_read", "cache_write", "cost")


def ledger(client: Client, asked: argparse.Namespace) -> Exit:
    if asked.action == "reconcile":
        return reconcile.reconcile(client, asked)
    found = client.get("/v1/ledger", by=asked.by, since=asked.since, until=asked.until)
    if asked.json:
        screen.as_json(found)
        return Exit.DONE
    if asked.csv:
        _csv(asked.by, pages.items(found))
        return Exit.DONE
    if asked.plot:
        _plot(asked.by, found)
        screen.note_rehearsal(client.target.is_rehearsal)
        return Exit.DONE
    rows = [_line(row) for row in (*pages.items(found), found["total"])]
    screen.table((asked.by, *_COLUMNS), rows, right=_COLUMNS)
    _doubts(found["total"])
    screen.note_rehearsal(client.target.is_rehearsal)
    return Exit.DONE


_CSV = (
    "calls", "open_calls", "unknown_calls", "assumed_calls", "input", "output", "cache_read", "cache_write_5m",
    "cache_write_1h", "cost_usd", "known_usd", "reserved_usd",
)  # fmt: skip
_DOLLARS = ("cost_usd", "known_usd", "reserved_usd")
"""Written out: a spreadsheet need not know what 4e-05 is."""
_FORMULA = ("=", "+", "-", "@", "\t")


def _csv(by: str, rows: list[dict[str, Any]]) -> None:
    """An unknown cost is an empty cell. What a person named cannot become a formula of whoever opens it."""
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow((by, "label", *_CSV))
    for row in rows:
        tokens: dict[str, Any] = row.get("tokens") or {}
        plain = {name: f"{Decimal(str(row[name])):f}" for name in _DOLLARS if row.get(name) is not None}
        values: dict[str, Any] = {**row, **tokens, **plain}
        label = safe.line(row.get("label") or "", 500)
        label = f"'{label}" if label.startswith(_FORMULA) else label
        out.writerow(
            (row.get("key") or "", label, *("" if values.get(name) is None else values[name] for name in _CSV))
        )


def _plot(by: str, found: dict[str, Any]) -> None:
    """What is known of each row's cost; a row with calls whose cost is unknown says that there is more."""
    rows = list(pages.items(found))
    if by == "day":
        rows.reverse()
    if not rows:
        screen.say("nothing was spent")
    bars = [(safe.line(row.get("label") or row.get("key") or "-"), float(row["known_usd"]), _cost(row)) for row in rows]
    for line in plot.bars(bars, min(shutil.get_terminal_size().columns, 120)):
        screen.say(line)
    screen.say(f"total {_cost(found['total'])}")
    _doubts(found["total"])


def _cost(row: dict[str, Any]) -> str:
    """What is known, and of how many calls the cost is not; nothing known is no sum."""
    if row.get("cost_usd") is not None:
        return screen.money(row["cost_usd"])
    known, unknown = row.get("known_usd"), row.get("unknown_calls")
    return f"{screen.money(known)} and {unknown} unknown" if known and unknown else "unknown"


def _doubts(total: dict[str, Any]) -> None:
    """What a reader would take the sums for and should not."""
    if total.get("unknown_calls"):
        screen.note(
            f"{total['unknown_calls']} calls have a cost that nobody knows, which is in no sum here: `nightshift replay"
            " TURN --calls --json` says why, the setting `prices` tells a price"
        )
    if total.get("assumed_calls"):
        screen.note(f"{total['assumed_calls']} calls were cut or lost with their worker: their cost is assumed")
    if total.get("open_calls"):
        reserved = screen.money(total["reserved_usd"])
        screen.note(f"{total['open_calls']} calls are out and may cost {reserved}, which is in no sum here yet")


def _line(row: dict[str, Any]) -> tuple[object, ...]:
    bill: dict[str, Any] = row.get("tokens") or {}
    names = ("input", "output", "cache_read", "cache_write")
    return (
        row.get("label") or row.get("key") or "-",
        screen.count(row.get("calls")),
        *(screen.count(bill.get(name)) for name in names),
        _cost(row),
    )


def replay(client: Client, asked: argparse.Namespace) -> Exit:
    if asked.calls:
        return calls(client, asked.turn, as_json=asked.json)
    body, headers = client.get_bytes(f"/v1/turns/{asked.turn}/replay", step=asked.step)
    # Into a file these are the bytes as sent. A terminal gets them made harmless: what a model wrote stands in them.
    if sys.stdout.isatty():
        screen.say(body.decode("utf-8", "replace"))
    else:
        sys.stdout.buffer.write(body)
        sys.stdout.buffer.flush()
    if headers.get("x-nightshift-agrees") == "false":
        raise Stop("replay_differs", "what was rebuilt is not what its digest says was sent: tell an admin")
    return Exit.DONE


def calls(client: Client, turn: str, *, as_json: bool) -> Exit:
    found = client.get(f"/v1/turns/{turn}/calls")
    if as_json:
        screen.as_json(found)
    else:
        calls_table(pages.items(found))
    return Exit.DONE


def calls_table(found: list[dict[str, Any]]) -> None:
    names = ("input", "output", "cache_read", "cache_write")
    rows: list[tuple[object, ...]] = []
    for row in found:
        bill: dict[str, Any] = row.get("tokens") or {}
        cost = screen.money(row.get("cost_usd")) + (" assumed" if row.get("cost_assumed") else "")
        head = (row.get("step"), row.get("purpose"), row.get("status"))
        rows.append((*head, *(screen.count(bill.get(name)) for name in names), cost))
    screen.table(("step", "purpose", "status", *_COLUMNS[1:]), rows, right=("step", *_COLUMNS[1:]))

"""Owns `ledger` and `replay`: what was spent, and the exact bytes of what was sent."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from api.cli import pages, screen
from api.cli.client import Client
from api.cli.exits import Exit, Stop

_COLUMNS = ("calls", "input", "output", "cache_read", "cache_write", "cost")


def ledger(client: Client, asked: argparse.Namespace) -> Exit:
    found = client.get("/v1/ledger", by=asked.by)
    if asked.json:
        screen.as_json(found)
        return Exit.DONE
    rows = [_line(row) for row in (*pages.items(found), found["total"])]
    screen.table((asked.by, *_COLUMNS), rows, right=_COLUMNS)
    screen.note_rehearsal(client.target.is_rehearsal)
    return Exit.DONE


def _line(row: dict[str, Any]) -> tuple[object, ...]:
    bill: dict[str, Any] = row.get("tokens") or {}
    names = ("input", "output", "cache_read", "cache_write")
    return (
        row.get("label") or row.get("key") or "-",
        screen.count(row.get("calls")),
        *(screen.count(bill.get(name)) for name in names),
        screen.money(row.get("cost_usd")),
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

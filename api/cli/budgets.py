"""Owns `budgets`: the caps that many turns share, how far they are used, and how they are changed."""

from __future__ import annotations

import argparse
from typing import Any
from urllib.parse import quote

from api.cli import safe, screen
from api.cli.client import Client
from api.cli.exits import Exit

_COLUMNS = ("scope", "subject", "period", "window", "cap", "spent", "drawn", "left", "used")
_NUMBERS = ("cap", "spent", "drawn", "left", "used")


def budgets(client: Client, asked: argparse.Namespace) -> Exit:
    return _set(client, asked) if asked.action == "set" else _list(client, asked)


def _list(client: Client, asked: argparse.Namespace) -> Exit:
    found: dict[str, Any] = client.get("/v1/budgets")
    if asked.json:
        screen.as_json(found)
        return Exit.DONE
    none = "no shared cap is set: `nightshift budgets set team team month 100`"
    screen.table(_COLUMNS, [_line(row) for row in found["items"]], right=_NUMBERS, none=none)
    if found["items"]:
        screen.note(f"days and months are those of {found['zone']}")
    screen.note_rehearsal(client.target.is_rehearsal)
    return Exit.DONE


def _set(client: Client, asked: argparse.Namespace) -> Exit:
    """Raises Stop where it is somebody else's to set, or where somebody was faster than `--was`."""
    body: dict[str, object] = {"cap_usd": _amount(asked.usd)}
    if asked.was is not None:
        body["was_usd"] = _amount(asked.was)
    path = f"/v1/budgets/{asked.scope}/{quote(asked.subject, safe='')}/{asked.period}"
    row: dict[str, Any] = client.put(path, body)
    if asked.json:
        screen.as_json(row)
        return Exit.DONE
    whose = f"{row['scope']} {safe.line(row['name'], 60)}"
    if row["cap_usd"] is None:
        screen.say(f"{whose} has no cap {_per(row)} any more")
    else:
        spent = f", {screen.money(row['spent_usd'])} of it is spent" if row["window"] else ""
        screen.say(f"{whose} may cost {screen.money(row['cap_usd'])} {_per(row)}{spent}")
    return Exit.DONE


def _amount(text: str) -> str | None:
    return None if text == "none" else text.removeprefix("$")


def _per(row: dict[str, Any]) -> str:
    return "in all" if row["period"] == "ever" else f"a {row['period']}"


def _line(row: dict[str, Any]) -> tuple[object, ...]:
    head = (row["scope"], safe.line(row["name"], 40), row["period"], row["window"] or "-", screen.money(row["cap_usd"]))
    if row["window"] is None:
        return (*head, "", "", "", "")
    used = (screen.money(row[name]) for name in ("spent_usd", "drawn_usd", "left_usd"))
    return (*head, *used, f"{row['percent']} %")

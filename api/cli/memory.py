"""Owns `memory` and `profile`: what is known in later conversations, read, changed, and put before others."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, cast
from urllib.parse import quote

from api.cli import pages, safe, screen
from api.cli.client import Client
from api.cli.exits import Exit, Stop

Row = dict[str, Any]
_TRIES = 3


def memory(client: Client, asked: argparse.Namespace) -> Exit:
    match asked.action:
        case None:
            return _show(client, asked, ("team", "me"))
        case "show":
            return _show(client, asked, (asked.scope,) if asked.scope else ("team", "me"))
        case "history":
            return _history(client, asked, asked.scope)
        case "add":
            return _changed(client, asked, asked.scope, lambda entries: [*entries, asked.text])
        case "remove":
            return _changed(client, asked, asked.scope, lambda entries: _without(entries, asked.number))
        case "share":
            return _share(client, asked)
        case _:
            return _changed(client, asked, asked.scope, lambda _: list(asked.entries))


def profile(client: Client, asked: argparse.Namespace) -> Exit:
    match asked.action:
        case None | "show":
            return _show(client, asked, ("profile",))
        case "history":
            return _history(client, asked, "profile")
        case _:
            return _changed(client, asked, "profile", lambda _: [asked.text] if asked.text.strip() else [])


def _show(client: Client, asked: argparse.Namespace, scopes: tuple[str, ...]) -> Exit:
    found = [_read(client, scope) for scope in scopes]
    if asked.json:
        screen.as_json(found if len(found) > 1 else found[0])
        return Exit.DONE
    for row in found:
        _print(row)
    return Exit.DONE


def _print(row: Row) -> None:
    by = f" · {screen.when(row['updated_at'])} by {row['updated_by']}" if row["updated_by"] else ""
    size = f"{screen.count(row['characters'])} of {screen.count(row['limit'])} characters"
    screen.say(f"{row['scope']} · revision {row['revision']} · {size}{by or ' · nothing yet'}")
    left_out = {one["entry"]: one["why"] for one in row["left_out"]}
    for number, entry in enumerate(row["entries"], 1):
        screen.say(f"{number:>3}. " + str(entry).replace("\n", "\n     "))
        if number in left_out:
            screen.note(f"     in no prompt: it reads like an instruction {left_out[number]}")


def _history(client: Client, asked: argparse.Namespace, scope: str) -> Exit:
    found = list(pages.rows(client, f"/v1/memory/{quote(scope, safe='')}/revisions"))
    if asked.json:
        screen.as_json(found)
        return Exit.DONE
    rows = [
        (
            row["revision"],
            screen.when(row["created_at"]),
            f"{row['author']}{', by an agent' if row['by_agent'] else ''}",
            row["action"],
            safe.line(_flat(row["taken"]), 60),
            safe.line(_flat(row["put"]), 60),
            row["turn_id"] or "",
        )
        for row in found
    ]
    screen.table(
        ("revision", "when", "by", "what", "taken out", "put in", "turn"),
        rows,
        right=("revision",),
        none="nothing was ever written there",
    )
    return Exit.DONE


def _changed(client: Client, asked: argparse.Namespace, scope: str, change: Callable[[list[str]], list[str]]) -> Exit:
    """Read, change, write for the revision that was read; read anew where somebody was faster, unless the person said
    which revision they mean."""
    for left in reversed(range(_TRIES)):
        row = _read(client, scope)
        given: int | None = getattr(asked, "revision", None)
        body = {"entries": change(row["entries"]), "revision": row["revision"] if given is None else given}
        try:
            written: Row = client.put(f"/v1/memory/{quote(scope, safe='')}", body)
        except Stop as stop:
            if stop.code != "memory_changed" or given is not None or not left:
                raise
            continue
        if asked.json:
            screen.as_json(written)
        else:
            _print(written)
        return Exit.DONE
    raise AssertionError("the last try returns or raises")


def _without(entries: list[str], number: int) -> list[str]:
    if number > len(entries):
        raise Stop("memory_entry_unknown", f"there are entries 1 to {len(entries)}", Exit.WRONG_USE)
    return [entry for at, entry in enumerate(entries, 1) if at != number]


def _share(client: Client, asked: argparse.Namespace) -> Exit:
    scope = "profile" if asked.profile else "me"
    row = _read(client, scope)
    numbers = asked.number or list(range(1, len(row["entries"]) + 1))
    if not numbers:
        raise Stop("memory_empty", f"there is nothing in your {scope} to put before anybody", Exit.WRONG_USE)
    body = {"scope": scope, "entries": numbers, "revision": row["revision"]}
    made: Row = client.post(f"/v1/sessions/{quote(asked.session, safe='')}/include", body)
    if asked.json:
        screen.as_json(made)
        return Exit.DONE
    for entry in made["entries"]:
        screen.say(f"- {entry}")
    screen.note("everyone who reads that conversation can read this from now on; it stands in its transcript")
    return Exit.DONE


def _read(client: Client, scope: str) -> Row:
    row: Row = client.get(f"/v1/memory/{quote(scope, safe='')}")
    return row


def _flat(value: object) -> str:
    if isinstance(value, list):
        return " | ".join(str(part) for part in cast("list[object]", value))
    return "" if value is None else str(value)

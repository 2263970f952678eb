"""Owns `stop`, `stops` and `resume`: what an admin stops, and lets go on."""

from __future__ import annotations

import argparse
from typing import Any
from urllib.parse import quote

from api.cli import pages, safe, screen
from api.cli.client import Client
from api.cli.exits import Exit


def stop(client: Client, asked: argparse.Namespace) -> Exit:
    body = {"scope": asked.scope, "cancel": asked.cancel, "note": asked.note}
    if asked.subject is not None:
        body["subject"] = asked.subject
    row: dict[str, Any] = client.post("/v1/stops", body)
    if asked.json:
        screen.as_json(row)
    else:
        screen.say(f"stopped: {_what(row)}{' and its turns are cancelled' if row['cancel'] else ''}")
        screen.note(f"nightshift resume {row['id']}")
    return Exit.DONE


def stops(client: Client, asked: argparse.Namespace) -> Exit:
    found = list(pages.rows(client, "/v1/stops", lifted="true" if asked.lifted else None))
    if asked.json:
        screen.as_json(found)
    elif not found:
        screen.say("nothing is stopped")
    else:
        rows = [
            (
                row["id"],
                safe.line(_what(row), 60),
                "yes" if row["cancel"] else "",
                screen.when(row["created_at"]),
                row["placed_by"],
                screen.when(row["lifted_at"]) if row["lifted_at"] else "",
                safe.line(row["note"], 60),
            )
            for row in found
        ]
        screen.table(("stop", "of", "cancels", "since", "by", "lifted", "note"), rows)
    return Exit.DONE


def resume(client: Client, asked: argparse.Namespace) -> Exit:
    row: dict[str, Any] = client.delete(f"/v1/stops/{quote(asked.stop, safe='')}")
    if asked.json:
        screen.as_json(row)
    else:
        screen.say(f"lifted: {_what(row)}")
    return Exit.DONE


def _what(row: dict[str, Any]) -> str:
    return "the whole fleet" if row["scope"] == "fleet" else f"{row['scope']} {row['name']}"

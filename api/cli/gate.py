"""Owns `gate`, `grants` and `bypass`: what the gate would decide, what was allowed beyond one call, and its end."""

from __future__ import annotations

import argparse
from typing import Any
from urllib.parse import quote

from api.cli import pages, safe, screen
from api.cli.client import Client
from api.cli.exits import Exit

_WIDTH = 160


def run(client: Client, asked: argparse.Namespace) -> Exit:
    match str(asked.command):
        case "gate":
            return gate(client, asked)
        case "grants":
            return grants(client, asked)
        case _:
            return bypass(client, asked)


def gate(client: Client, asked: argparse.Namespace) -> Exit:
    """Prints the decision; done whatever it is, for nothing was to be run."""
    body = {"command": " ".join(asked.words), "profile": asked.profile, "job": asked.job}
    if asked.session:
        body["session"] = asked.session
    said: dict[str, Any] = client.post("/v1/gate", body)
    if asked.json:
        screen.as_json(said)
        return Exit.DONE
    screen.say(f"{said['decision']}: {safe.line(said['why'], _WIDTH)} ({said['rule']})")
    for line in said["understood"]:
        screen.say(f"  {safe.line(line, _WIDTH)}")
    for hit in said["hits"]:
        if hit["rule"] != said["rule"]:
            screen.note(f"  {hit['decision']} {hit['rule']}: {safe.line(hit['why'], _WIDTH)}")
    return Exit.DONE


def grants(client: Client, asked: argparse.Namespace) -> Exit:
    if asked.revoke:
        row: dict[str, Any] = client.delete(f"/v1/grants/{quote(asked.revoke, safe='')}")
        if asked.json:
            screen.as_json(row)
        else:
            screen.say(f"revoked: {_what(row)}")
        return Exit.DONE
    found = list(pages.rows(client, "/v1/grants", ended="true" if asked.ended else None))
    if asked.json:
        screen.as_json(found)
    elif not found:
        screen.say("nothing was granted")
    else:
        rows = [
            (
                one["id"], one["scope"], one["principal"] or "-", safe.line(" ".join(one["patterns"]), 60),
                one["session_id"] or "", one["granted_by"], screen.when(one["created_at"]),
                "yes" if one["stands"] else "no",
            )
            for one in found
        ]  # fmt: skip
        screen.table(("grant", "scope", "for", "of", "in session", "by", "since", "stands"), rows)
    return Exit.DONE


def bypass(client: Client, asked: argparse.Namespace) -> Exit:
    body = {"minutes": asked.minutes, "note": asked.note}
    row: dict[str, Any] = client.post(f"/v1/sessions/{quote(asked.session, safe='')}/bypass", body)
    if asked.json:
        screen.as_json(row)
    else:
        screen.say(f"until {screen.when(row['expires_at'])} no pattern is asked about in this session")
        screen.note(f"nightshift grants --revoke {row['id']}")
    return Exit.DONE


def _what(row: dict[str, Any]) -> str:
    return f"{row['scope']} {' '.join(row['patterns'])}".strip()

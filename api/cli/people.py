"""Owns `people` and `tokens`: who may sign in and what they may do. An admin's."""

from __future__ import annotations

import argparse
from typing import Any
from urllib.parse import quote

from api.cli import pages, screen
from api.cli.client import Client
from api.cli.exits import Exit, Stop


def people(client: Client, asked: argparse.Namespace) -> Exit:
    match asked.action:
        case None:
            return _list_people(client, asked)
        case "add":
            body = {"name": asked.name, "role": asked.role, "kind": "service" if asked.service else None}
            row: dict[str, Any] = client.post("/v1/people", body)
        case _:
            change = {"role": asked.role, "disabled": {"disable": True, "enable": False}.get(asked.action)}
            given = {name: value for name, value in change.items() if value is not None}
            row = client.patch(f"/v1/people/{_find(client, asked.person)}", given)
    if asked.json:
        screen.as_json(row)
    else:
        screen.say(f"{row['name']} · {row['role']}{' · disabled' if row['disabled'] else ''} · {row['id']}")
        if not row["tokens"] and not row["disabled"]:
            screen.note(f"nightshift tokens add {row['id']} makes a token to sign in with")
    return Exit.DONE


def tokens(client: Client, asked: argparse.Namespace) -> Exit:
    match asked.action:
        case None:
            return _list_tokens(client, asked)
        case "add":
            body = {"person": _find(client, asked.person), "label": asked.label}
            row: dict[str, Any] = client.post("/v1/tokens", body)
            if row.get("token") is None:  # its answer was lost, and what is stored does not tell it
                raise Stop("token_lost", f"the token was made but its answer was lost: revoke {row['id']}, add another")
            if not asked.json:
                screen.say(str(row["token"]))
                screen.note(f"shown this once · nightshift tokens revoke {row['id']} takes it back")
        case _:
            row = client.delete(f"/v1/tokens/{quote(asked.token, safe='')}")
            if not asked.json:
                screen.say(f"token {row['id']} of {row['person_name']} is revoked")
    if asked.json:
        screen.as_json(row)
    return Exit.DONE


def _list_people(client: Client, asked: argparse.Namespace) -> Exit:
    found = list(pages.rows(client, "/v1/people"))
    if asked.json:
        screen.as_json(found)
        return Exit.DONE
    rows = [
        (row["id"], row["name"], row["kind"], row["role"], "disabled" if row["disabled"] else row["tokens"])
        for row in found
    ]
    screen.table(("id", "name", "kind", "role", "tokens"), rows, right=("tokens",))
    return Exit.DONE


def _list_tokens(client: Client, asked: argparse.Namespace) -> Exit:
    found = list(pages.rows(client, "/v1/tokens"))
    if asked.json:
        screen.as_json(found)
        return Exit.DONE
    rows = [
        (
            row["id"], row["person_name"], row["label"], screen.when(row["created_at"]),
            screen.when(row["revoked_at"]) if row["revoked_at"] else "-",
        )
        for row in found
    ]  # fmt: skip
    screen.table(("token", "of", "label", "made", "revoked"), rows)
    return Exit.DONE


def _find(client: Client, person: str) -> str:
    """The id of a person given by id or by name."""
    found = [row for row in pages.rows(client, "/v1/people") if person in (row["id"], row["name"])]
    if not found:
        raise Stop("person_unknown", f"nobody is called {person}: `nightshift people` lists them", Exit.WRONG_USE)
    return str(found[0]["id"])

"""Owns `approvals`, `approve` and `deny`: what waits for a person's decision, and the decision."""

from __future__ import annotations

import argparse
from typing import Any, Literal
from urllib.parse import quote

from api.cli import live, pages, screen
from api.cli.client import Client
from api.cli.exits import Exit

CALL_WIDTH = 160


def approvals(client: Client, asked: argparse.Namespace) -> Exit:
    status = None if asked.status == "all" else asked.status
    found = list(pages.rows(client, "/v1/approvals", status=status))
    if asked.json:
        screen.as_json(found)
    elif not found:
        screen.say("nothing was asked" if status is None else f"nothing is {status}")
    else:
        rows = [
            (
                row["id"],
                row.get("status"),
                screen.when(row.get("created_at")),
                row.get("requested_by") or "-",
                f"{row.get('role') or ''}{' (four eyes)' if row.get('four_eyes') else ''}",
                live.call(row, CALL_WIDTH),
            )
            for row in found
        ]
        screen.table(("approval", "status", "since", "asked by", "decides", "call"), rows)
    return Exit.DONE


def approve(client: Client, asked: argparse.Namespace) -> Exit:
    return _decided(asked, decide(client, asked.approval, "approve", asked.note, asked.scope))


def deny(client: Client, asked: argparse.Namespace) -> Exit:
    return _decided(asked, decide(client, asked.approval, "deny", asked.note))


def decide(
    client: Client, approval: str, decision: Literal["approve", "deny"], note: str | None, scope: str = "once"
) -> dict[str, Any]:
    """The request as it stands afterwards. Raises Stop where somebody was faster, or where it is not ours to decide."""
    body: dict[str, Any] = {"decision": decision, "note": note}
    if scope != "once":
        body["scope"] = scope
    return client.post(f"/v1/approvals/{quote(approval, safe='')}", body)


def _decided(asked: argparse.Namespace, row: dict[str, Any]) -> Exit:
    if asked.json:
        screen.as_json(row)
    else:
        screen.say(f"{row['status']}: {live.call(row, CALL_WIDTH)}")
        if row.get("turn_id"):
            screen.note(f"nightshift watch {row['turn_id']}")
    return Exit.DONE

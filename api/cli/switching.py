"""Owns `model`: another model for a session. What that costs is said before it is done, and a person is asked."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from api.cli import safe, screen
from api.cli.client import Client
from api.cli.exits import Exit, Stop

Row = dict[str, Any]


def model(client: Client, asked: argparse.Namespace) -> Exit:
    """Raises Stop where it is somebody else's session or a child's, where there is no such model, and
    `switch_unconfirmed` where nobody is there to be asked and `--yes` was not given."""
    path = f"/v1/sessions/{quote(asked.session, safe='')}"
    price: Row = client.get(f"{path}/switch", model=asked.model, provider=asked.provider)
    if price["changes"] and not _agreed(price, yes=asked.yes):
        screen.note(f"nothing has changed: session {asked.session} speaks to {price['stays']['model']}")
        return Exit.FAILED
    given = {"model": asked.model} | ({"provider": asked.provider} if asked.provider else {})
    row: Row = client.patch(path, given)
    if asked.json:
        screen.as_json({**row, "switch": price})
        return Exit.DONE
    screen.note_rehearsal(client.target.is_rehearsal)
    screen.say(f"session {asked.session} speaks to {row['model']} ({row['provider']}) from its next turn on")
    return Exit.DONE


def _agreed(price: Row, *, yes: bool) -> bool:
    """The price goes to stderr: stdout is for what was done."""
    for line in told(price):
        screen.note(line)
    if yes:
        return True
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise Stop(
            "switch_unconfirmed",
            f"this is no terminal, so nobody can be asked whether to switch to {price['to']['model']}: nothing has "
            "changed. Give --yes where that price is right",
            Exit.WRONG_USE,
        )
    print(
        f"let {safe.line(price['to']['model'])} answer from the next turn on? [y/N] ",
        end="",
        file=sys.stderr,
        flush=True,
    )
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def told(price: Row) -> Iterator[str]:
    """What a person reads of it, a line for each of the two."""
    to, stays = price["to"], price["stays"]
    if not price["tokens"]:
        yield f"{_name(to)}: the conversation has not begun, so there is nothing to read anew"
        return
    yield f"{_name(to)}: about {price['tokens']:,} tokens are {_how(to)}"
    yield f"{_name(stays)}, if you stay: the same are {_how(stays)}"
    if to["cost_usd"] is not None and stays["cost_usd"] is not None:
        more = to["cost_usd"] - stays["cost_usd"]
        word = "more" if more >= 0 else "less"
        yield f"so the next call costs about {screen.money(abs(more))} {word}, before anything is answered"


def _name(one: Row) -> str:
    return f"{one['model']} ({one['provider']})"


def _how(one: Row) -> str:
    price = "at a price that is not known" if one["cost_usd"] is None else f"for {screen.money(one['cost_usd'])}"
    return f"{'read anew' if one['anew'] else 'read from its cache'} {price}"

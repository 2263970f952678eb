"""Owns `rewind`, `restore` and `compact`: what a person asks of a transcript as a whole, and what came of it."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from api.cli import safe, screen
from api.cli.client import Client
from api.cli.exits import Exit, Stop

Row = dict[str, Any]
PATIENCE_S = 300.0
"""How long a command waits for what it asked for. A compaction is a call of the model."""
_MOST_LISTED = 10
_PAUSES = (0.1, 0.2, 0.5, 1.0)


def rewind(client: Client, asked: argparse.Namespace) -> Exit:
    return _run(client, asked, "rewind", {"to_turn": asked.to})


def restore(client: Client, asked: argparse.Namespace) -> Exit:
    return _run(client, asked, "restore", {"rewind": asked.rewind} if asked.rewind else {})


def compact(client: Client, asked: argparse.Namespace) -> Exit:
    return _run(client, asked, "compact", {})


def _run(client: Client, asked: argparse.Namespace, what: str, body: Mapping[str, object]) -> Exit:
    taken = ask(client, asked.session, what, body)
    request = wait(client, asked.session, taken)
    if asked.json:
        screen.as_json({**taken, "request": request})
    elif request["status"] in ("done", "skipped"):
        for line in told(asked.session, taken, request):
            screen.say(line)
    if request["status"] in ("done", "skipped"):
        return Exit.DONE
    raise failed(request)


def of_numbers(client: Client, session: str, wanted: str) -> tuple[str | None, list[str]]:
    """What `/rewind WANTED` names in a chat: the turn from which on to take back, where WANTED is its id or how many
    of the last turns to take back; else none, and the lines that say what may be named. Raises Stop."""
    path = f"/v1/sessions/{quote(session, safe='')}/turns"
    if wanted and not wanted.isdecimal():
        return wanted, []
    found: Row = client.get(path, limit=_MOST_LISTED)
    turns = [one for one in found["items"] if not one.get("rewound") and one["started_at"]]
    if wanted and 0 < int(wanted) <= len(turns):
        return str(turns[int(wanted) - 1]["id"]), []
    if not turns:
        return None, ["nothing stands that could be taken back"]
    lines = [
        f"/rewind {at}  {screen.when(one['created_at'])} {one['status']} · {safe.line(one.get('answer') or '', 60)}"
        for at, one in enumerate(turns, 1)
    ]
    return None, ["how many turns to take back, the newest first, or the id of a turn:", *lines]


def ask(client: Client, session: str, what: str, body: Mapping[str, object]) -> Row:
    """What the API took: the request, its turn, and what a rewind does not undo. Raises Stop."""
    return client.post(f"/v1/sessions/{quote(session, safe='')}/{what}", body)


def wait(client: Client, session: str, taken: Row, *, patience_s: float = PATIENCE_S) -> Row:
    """The request once it is no longer waiting. Raises Stop `asked_waits` where that takes too long."""
    path = f"/v1/sessions/{quote(session, safe='')}/requests/{taken['request']['id']}"
    deadline = time.monotonic() + patience_s
    for pause in _pauses():
        request: Row = client.get(path)
        if request["status"] != "waiting":
            return request
        if time.monotonic() + pause > deadline:
            break
        time.sleep(pause)
    raise Stop(
        "asked_waits",
        f"the {taken['request']['kind']} still waits for a worker: it will be done; `nightshift watch "
        f"{taken['request']['turn_id']}` follows it, `nightshift cancel` takes it back",
    )


def _pauses() -> Iterator[float]:
    yield from _PAUSES
    while True:
        yield _PAUSES[-1]


def failed(request: Row) -> Stop:
    """Why it was not done. A request without a reason was cancelled."""
    error: Row = request.get("error") or {}
    kind = request["kind"]
    code = str(error.get("code") or f"{kind}_{request['status']}")
    return Stop(code, str(error.get("message") or f"the {kind} was {request['status']}: nothing has changed"))


def told(session: str, taken: Row, request: Row) -> Iterator[str]:
    """What a person reads of a request that is done: what changed, by how much, and what did not."""
    sizes = _sizes(request)
    match request["kind"]:
        case "rewind":
            yield f"taken back: messages {request['first']} to {request['last']}{sizes}"
            yield from not_undone(taken)
            yield f"nightshift restore {session} brings them back"
        case "restore":
            yield f"they stand again, where they stood{sizes}"
        case _ if request["status"] == "skipped":
            yield f"nothing to gain: {request.get('note') or 'the middle of the conversation is too small'}{sizes}"
        case _:
            note = f" ({request['note']})" if request.get("note") else ""
            yield f"a summary stands for messages {request['first']} to {request['last']}{sizes}{note}"


def not_undone(taken: Row) -> Iterator[str]:
    effects: Sequence[Row] = taken.get("effects") or []
    memory: Sequence[Row] = taken.get("memory") or []
    if not effects and not memory:
        return
    yield "what this does not undo:"
    for one in effects:
        unsure = "" if one["status"] == "done" else f" ({one['status']})"
        yield f"  {screen.when(one['at'])} {one['tool']} {safe.line(one['arguments'], 80)}{unsure}"
    for one in memory:
        what = safe.line(one.get("put") or one.get("taken") or "", 80)
        yield f"  {screen.when(one['at'])} memory of {one['scope']}: {one['action']} {what}"
    if taken.get("more"):
        yield "  … and more"


def _sizes(request: Row) -> str:
    before, after = request.get("tokens_before"), request.get("tokens_after")
    return "" if before is None or after is None else f" · {before:,} → {after:,} tokens"

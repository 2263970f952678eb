"""Owns `send`, `watch`, `steer` and `cancel`: one turn, from its input to its end."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

from api.cli import events, exits, screen, waiting
from api.cli.client import Client
from api.cli.exits import Exit, Stop
from api.cli.live import Live, to_stderr


def send(client: Client, asked: argparse.Namespace) -> Exit:
    text = _message(asked)
    key: str | None = asked.idempotency_key
    session: str = asked.session or open_session(client, asked, key=f"{key}:session" if key else None)
    body = {"input": text, "on_busy": asked.on_busy, "cap_usd": asked.cap_usd, "max_steps": asked.max_steps}
    accepted: dict[str, Any] = client.post(f"/v1/sessions/{session}/turns", body, key=key)
    turn: dict[str, Any] = accepted["turn"]
    if asked.wait:
        return wait(client, str(turn["id"]), as_json=asked.json)
    if asked.json:
        screen.as_json(accepted)
    else:
        how = accepted.get("how") or turn["status"]
        screen.say(f"turn {turn['id']} in session {session} is {how}")
        screen.note(f"nightshift watch {turn['id']}")
    return Exit.DONE


def open_session(client: Client, asked: argparse.Namespace, *, key: str | None = None) -> str:
    """A new session with what the command line says of it. Without a title it gets the first line that is said."""
    folder = str(Path(asked.folder).expanduser().absolute()) if asked.folder else None
    if folder is not None and not Path(folder).is_dir():  # the workers may stand elsewhere, so it is no error here
        screen.note(f"{folder} is no folder on this machine: there is nothing to read unless the workers have it")
    body = {"title": asked.title or None, "model": asked.model, "audience": asked.audience, "folder": folder}
    if asked.command == "chat":
        body |= {"cap_usd": asked.cap_usd, "keep_warm": asked.keep_warm}
    return str(client.post("/v1/sessions", body, key=key)["id"])


def _message(asked: argparse.Namespace) -> str:
    if (asked.text is None) == (asked.file is None):
        raise Stop("wrong_use", "give the message as TEXT or with --file, one of them", Exit.WRONG_USE)
    if asked.text is not None:
        return str(asked.text)
    try:
        raw = sys.stdin.buffer.read() if asked.file == "-" else Path(asked.file).read_bytes()
    except OSError as error:
        raise Stop("file_unreadable", f"{asked.file}: {error.strerror}", Exit.WRONG_USE) from error
    return raw.decode("utf-8", "replace")


def wait(client: Client, turn: str, *, as_json: bool) -> Exit:
    """Until the turn ends or waits for a person or money. The answer goes to stdout, the progress to stderr.

    On a terminal the answer streams; elsewhere it is printed once, whole, so that nothing void ever stands in it.
    """
    streams = screen.is_rich() and not as_json
    live = Live() if streams else to_stderr()
    try:
        _follow(client, turn, live, streams=streams)
    except KeyboardInterrupt:
        live.note(f"the turn goes on without you: nightshift watch {turn}, or cancel {turn}")
        raise
    row: dict[str, Any] = client.get(f"/v1/turns/{turn}")
    if as_json:
        screen.as_json(row)
    elif row.get("answer") and not streams:
        screen.say(str(row["answer"]))
    if not as_json:
        screen.note_rehearsal(client.target.is_rehearsal)
    return conclude(row, tell=not as_json)


def _follow(client: Client, turn: str, live: Live, *, streams: bool) -> None:
    for seen in events.follow(client, turn, lost=lambda why: live.note(f"… connection lost ({why}); coming back")):
        if streams:
            live.show(seen)
        elif sys.stderr.isatty():
            live.remark(seen)
        if seen.event.kind in {"turn.parked", "snapshot"} and _waits_for_someone(client, turn):
            break
    live.end_line()


def _waits_for_someone(client: Client, turn: str) -> bool:
    row: dict[str, Any] = client.get(f"/v1/turns/{turn}")
    return row.get("status") == "parked" and exits.of_turn(row) is not None


def conclude(row: dict[str, Any], *, tell: bool = True) -> Exit:
    """The exit code of a turn that ended or waits, and the line that says so."""
    outcome = exits.of_turn(row)
    status = str(row.get("status"))
    if tell and row.get("unknown_effects"):
        screen.note(screen.unknown_sentence(row))
    if tell and status == "done":
        children = row.get("children_cost_usd")
        of_children = f" and {screen.money(children)} of its children" if children else ""
        cost = f"{screen.money(row.get('cost_usd'))}{of_children}"
        screen.note(f"{cost} · {screen.tokens(row.get('tokens'))} · turn {row['id']}")
    elif tell and status == "parked":
        for line in waiting.told(row):
            screen.note(line)
    elif tell:
        code, why = exits.error_code(row) or f"turn_{status}", exits.error_text(row)
        print(screen.failure(code, why or f"turn {row['id']} is {status}"), file=sys.stderr)
    return Exit.FAILED if outcome is None else outcome


def watch(client: Client, asked: argparse.Namespace) -> Exit:
    live = Live()
    for seen in events.follow(
        client,
        asked.turn,
        patience_s=asked.patience,
        last_id=asked.last_id,
        lost=lambda why: screen.note(f"… connection lost ({why}); coming back"),
    ):
        if asked.json:
            screen.as_line({"id": seen.event.id, "event": seen.event.kind, "data": seen.event.data})
        else:
            live.show(seen)
        if seen.event.kind in {"turn.parked", "snapshot"} and _waits_for_someone(client, asked.turn):
            break
    live.end_line()
    return conclude(client.get(f"/v1/turns/{asked.turn}"), tell=not asked.json)


def steer(client: Client, asked: argparse.Namespace) -> Exit:
    answer: dict[str, Any] = client.post(f"/v1/turns/{asked.turn}/steer", {"input": asked.text})
    if answer.get("how") == "queued":
        own = answer["turn"]["id"]
        return _told(asked, answer, f"is not yours to steer: your words wait as a turn of their own, {own}")
    return _told(asked, answer, "will read it")


def cap(client: Client, asked: argparse.Namespace) -> Exit:
    """Raises Stop where it is somebody else's money, or a child's."""
    place = {"turn": "turns", "session": "sessions"}[asked.scope]
    row: dict[str, Any] = client.patch(f"/v1/{place}/{quote(asked.subject, safe='')}", {"cap_usd": asked.usd})
    if asked.json:
        screen.as_json(row)
        return Exit.DONE
    what = "has no cap any more" if asked.usd is None else f"may cost {screen.money(row.get('cap_usd'))}"
    screen.say(f"{asked.scope} {asked.subject} {what}")
    if asked.scope == "turn" and row.get("parked_on") == "money":
        for line in waiting.told(row):
            screen.note(line)
    return Exit.DONE


def warm(client: Client, asked: argparse.Namespace) -> Exit:
    """Raises Stop where it is somebody else's money, or a child's session."""
    given = {"keep_warm": asked.wanted == "on"}
    row: dict[str, Any] = client.patch(f"/v1/sessions/{quote(asked.session, safe='')}", given)
    if asked.json:
        screen.as_json(row)
        return Exit.DONE
    kept = row["cache"]["keep_warm"]
    how = "is read before the provider forgets it, while that is cheaper" if kept else "is not kept warm"
    screen.say(f"session {asked.session} {how}")
    return Exit.DONE


def title(client: Client, asked: argparse.Namespace) -> Exit:
    """Raises Stop where it is somebody else's session."""
    row: dict[str, Any] = client.patch(f"/v1/sessions/{quote(asked.session, safe='')}", {"title": " ".join(asked.text)})
    if asked.json:
        screen.as_json(row)
        return Exit.DONE
    screen.say(f"session {asked.session} is called {screen.plain(str(row['title']))}")
    return Exit.DONE


def cancel(client: Client, asked: argparse.Namespace) -> Exit:
    return _told(asked, client.post(f"/v1/turns/{asked.turn}/cancel"), "is asked to stop")


def _told(asked: argparse.Namespace, answer: object, what: str) -> Exit:
    if asked.json:
        screen.as_json(answer)
    else:
        screen.say(f"turn {asked.turn} {what}")
    return Exit.DONE

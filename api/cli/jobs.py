"""Owns `jobs` and its actions: cron definitions over HTTP."""

from __future__ import annotations

import argparse
import time
import uuid
from pathlib import Path
from typing import Any

from api.cli import pages, safe, screen, turns
from api.cli.client import Client
from api.cli.exits import Exit, Stop

FIELDS = (
    "name",
    "cron",
    "zone",
    "prompt",
    "tail",
    "folder",
    "workspace",
    "model",
    "cap_usd",
    "max_steps",
    "deadline_s",
    "audience",
    "deliver_session",
    "deliver_file",
    "stop_same",
    "stop_dearer",
)
_PATHS = ("folder", "workspace", "deliver_file")


def run(client: Client, asked: argparse.Namespace) -> Exit:
    match asked.action:
        case None:
            return _list(client, asked)
        case "add":
            return _tell(asked, client.post("/v1/jobs", fields(asked)))
        case "edit":
            return _edit(client, asked)
        case "run":
            return _run(client, asked)
        case "pause" | "resume":
            path = f"/v1/jobs/{find(client, asked.job)}"
            return _tell(asked, client.patch(path, {"paused": asked.action == "pause"}))
        case "remove":
            client.delete(f"/v1/jobs/{find(client, asked.job)}")
            return _say(asked, {"removed": asked.job}, f"job {asked.job} is removed; its runs stay")
        case "runs":
            return _runs(client, asked)
        case _:
            return _explain(client, asked)


def fields(asked: argparse.Namespace) -> dict[str, Any]:
    """What the command line says of a job; paths are made absolute, for the worker stands elsewhere."""
    given = {name: getattr(asked, name) for name in FIELDS if getattr(asked, name, None) is not None}
    for name in _PATHS:
        if name in given:
            given[name] = str(Path(given[name]).expanduser().absolute())
    prompt = given.get("prompt", "")
    if prompt.startswith("@"):
        try:
            given["prompt"] = Path(prompt[1:]).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise Stop("file_unreadable", f"{prompt[1:]}: {error}", Exit.WRONG_USE) from error
    return given


def find(client: Client, name: str) -> str:
    """The id of a job given by id or by name."""
    try:
        return str(uuid.UUID(name))
    except ValueError:
        pass
    for row in pages.rows(client, "/v1/jobs"):
        if row.get("name") == name:
            return str(row["id"])
    raise Stop("not_found", f"no job is called '{name}': `nightshift jobs` lists them", status=404)


def _edit(client: Client, asked: argparse.Namespace) -> Exit:
    given = fields(asked) | dict.fromkeys((name.replace("-", "_") for name in asked.unset or ()), None)
    if not given:
        raise Stop("wrong_use", "say what to change, such as --cron '30 6 * * *'", Exit.WRONG_USE)
    return _tell(asked, client.patch(f"/v1/jobs/{find(client, asked.job)}", given))


def _list(client: Client, asked: argparse.Namespace) -> Exit:
    found = list(pages.rows(client, "/v1/jobs"))
    if asked.json:
        screen.as_json(found)
        return Exit.DONE
    rows = [
        (
            row["id"],
            row["name"],
            row["cron"],
            row["zone"],
            _paused(row) if row.get("paused") else screen.when(row.get("next_at")),
        )
        for row in found
    ]
    none = "no jobs yet: nightshift jobs add NAME --cron '30 6 * * 1-5' --prompt TEXT"
    screen.table(("job", "name", "cron", "zone", "next"), rows, none=none)
    return Exit.DONE


def _paused(row: dict[str, Any]) -> str:
    return f"paused: {safe.line(row['paused_why'], 120)}" if row.get("paused_why") else "paused"


def _run(client: Client, asked: argparse.Namespace) -> Exit:
    answer: dict[str, Any] = client.post(f"/v1/jobs/{find(client, asked.job)}/run")
    if not asked.wait:
        return _say(asked, answer, f"job {asked.job} is due now: `nightshift jobs runs {asked.job}`")
    job = find(client, asked.job)
    done = turns.wait(client, wait_for_turn(client, job, answer), as_json=asked.json)
    _wait_for_end(client, job, answer)
    return done


def wait_for_turn(client: Client, job: str, run: dict[str, Any], *, patience_s: float = 60.0) -> str:
    """The turn of a run that was asked for: the tick is the scheduler's to make, so it may take a moment."""
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        for row in pages.rows(client, f"/v1/jobs/{job}/runs", limit=50):
            if row["id"] != run["id"]:
                continue
            if row["turn_id"]:
                return str(row["turn_id"])
            if row["ended_at"]:
                raise Stop(str(row["error_code"] or f"run_{row['status']}"), str(row["error_text"] or row["status"]))
        time.sleep(0.1)
    raise Stop("run_not_started", f"no scheduler took the run within {patience_s:g} s: `nightshift doctor` says more")


def _wait_for_end(client: Client, job: str, run: dict[str, Any], *, patience_s: float = 10.0) -> None:
    """The turn is over; the run is so a moment later, when the scheduler has written its deliveries down."""
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        rows = pages.rows(client, f"/v1/jobs/{job}/runs", limit=50)
        if any(row["id"] == run["id"] and row["ended_at"] for row in rows):
            return
        time.sleep(0.1)


def _runs(client: Client, asked: argparse.Namespace) -> Exit:
    found = list(pages.rows(client, f"/v1/jobs/{find(client, asked.job)}/runs", limit=50))
    if asked.json:
        screen.as_json(found)
        return Exit.DONE
    rows = [
        (
            screen.when(row.get("instant")),
            row.get("status"),
            row.get("turn_id") or "-",
            screen.unknown(row),
            screen.money(row.get("cost_usd")),
            safe.line(row.get("error_text") or row.get("error_code") or "", 80),
        )
        for row in found
    ]
    none = f"it has not run yet: nightshift jobs run {asked.job} runs it now"
    screen.table(("due", "status", "turn", "unknown", "cost", "error"), rows, right=("cost",), none=none)
    return Exit.DONE


def _explain(client: Client, asked: argparse.Namespace) -> Exit:
    found: dict[str, Any] = client.get(f"/v1/jobs/{find(client, asked.job)}/explain")
    if asked.json:
        screen.as_json(found)
        return Exit.DONE
    screen.say(str(found.get("text") or ""))
    instants: list[dict[str, Any]] = found.get("instants") or []
    rows = [(row.get("local"), row.get("utc")) for row in instants]
    screen.table(("local", "utc"), rows)
    return Exit.DONE


def _tell(asked: argparse.Namespace, row: dict[str, Any]) -> Exit:
    state = "is paused" if row.get("paused") else f"comes due next at {screen.when(row.get('next_at'))}"
    return _say(asked, row, f"job {row['name']} ({row['id']}) {state}")


def _say(asked: argparse.Namespace, answer: object, sentence: str) -> Exit:
    if asked.json:
        screen.as_json(answer)
    else:
        screen.say(sentence)
    return Exit.DONE

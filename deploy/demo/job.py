"""Owns the demo's job: made by the API, due by the API, and followed to what it delivers."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from api.cli import events, jobs, pages
from api.cli.client import Client
from api.cli.events import Seen
from api.cli.exits import Stop
from deploy.demo.family import Child, Family, Worked

SCAFFOLD = Path(__file__).parent / "prompt.md"
EVERY_MORNING = "30 6 * * *"
DELIVERY_PATIENCE_S = 30.0
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Run:
    """What came of it. `calls` are rows of the API, of the turn alone; `file` is the delivered brief."""

    job: Row
    turn: Row
    session: Row
    calls: list[Row]
    children: list[Worked]
    file: Path

    @property
    def all_calls(self) -> list[Row]:
        return [*self.calls, *(call for child in self.children for call in child.calls)]


def make(client: Client, folder: Path, *, zone: str) -> Row:
    """A job as a person would have it: every morning, on this folder, into the home's folder of briefs."""
    name = f"overnight brief on {folder.name or folder} ({datetime.now().astimezone():%Y-%m-%d %H:%M:%S})"
    body = {
        "name": name,
        "cron": EVERY_MORNING,
        "zone": zone,
        "prompt": SCAFFOLD.read_text("utf-8"),
        "folder": str(folder),
    }
    return client.post("/v1/jobs", body)


def run(
    client: Client,
    job: Row,
    *,
    show: Callable[[Seen], None],
    show_child: Callable[[Child, Seen], None],
    lost: Callable[[str], None],
) -> Run:
    """Due now, and followed to its end. Raises Stop where it ends any other way than done and delivered."""
    asked: Row = client.post(f"/v1/jobs/{job['id']}/run")
    turn = jobs.wait_for_turn(client, str(job["id"]), asked)
    family = Family(client, show_child)
    for seen in events.follow(client, turn, lost=lost):
        show(seen)
        family.see(seen)
    row: Row = client.get(f"/v1/turns/{turn}")
    if row["status"] != "done":
        error: Row = row.get("error") or {}
        raise Stop(
            str(error.get("code") or f"turn_{row['status']}"), str(error.get("message") or "the run did not end")
        )
    file = _await_delivery(client, job, str(asked["id"]))
    session: Row = client.get(f"/v1/sessions/{row['session_id']}")
    calls = list(pages.rows(client, f"/v1/turns/{turn}/calls"))
    return Run(job, row, session, calls, family.worked(), file)


def _await_delivery(client: Client, job: Row, run_id: str) -> Path:
    """The scheduler delivers the answer a moment after the turn is done; done means that the file was read back."""
    deadline = time.monotonic() + DELIVERY_PATIENCE_S
    why = "no scheduler took it"
    while time.monotonic() < deadline:
        runs = pages.rows(client, f"/v1/jobs/{job['id']}/runs", limit=10)
        found = [delivery for row in runs if row["id"] == run_id for delivery in row["deliveries"]]
        for delivery in found:
            if delivery["kind"] == "file" and delivery["status"] == "done":
                return Path(delivery["target"])
            why = str(delivery["error_text"] or why)
        time.sleep(0.1)
    raise Stop(
        "not_delivered", f"the turn is done and its brief was not delivered in {DELIVERY_PATIENCE_S:.0f} s: {why}"
    )


def put_away(client: Client, job: Row) -> None:
    """A demo leaves no job behind that would come due tomorrow; its runs and its transcript stay."""
    with suppress(Stop):  # what went wrong before is what is told
        client.delete(f"/v1/jobs/{job['id']}")

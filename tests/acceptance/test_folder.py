"""The demo on a folder as a person has one: mail, calendar, notes and a table, each cited with what stands in it."""

from __future__ import annotations

import csv
import json
import mailbox
import os
import random
import secrets
import subprocess
import sys
from dataclasses import dataclass
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest

from tests.ground import ROOT

pytestmark = pytest.mark.timeout(240)


@dataclass(frozen=True, slots=True)
class Material:
    """A folder, and what the brief has to say of each file: words that nobody could guess."""

    folder: Path
    wanted: dict[str, str]


def make(folder: Path) -> Material:
    folder.mkdir()
    word = {name: secrets.token_hex(4) for name in ("mail", "event", "one", "two", "three")}
    message = EmailMessage()
    message["From"], message["To"] = "Ann <ann@example.org>", "team@example.org"
    message["Subject"], message["Date"] = f"Prüfung {word['mail']}", "Sat, 28 Nov 2026 17:02:11 +0100"
    message.set_content("Can you confirm by Friday?\n")
    box = mailbox.mbox(folder / "post.mbox")
    box.add(mailbox.mboxMessage(message))
    box.close()
    (folder / "team.ics").write_text(
        "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//x//x//EN\r\nBEGIN:VEVENT\r\nUID:1@example.org\r\n"
        "DTSTAMP:20261129T120000Z\r\nDTSTART:20261204T093000Z\r\nDTEND:20261204T110000Z\r\n"
        f"SUMMARY:Inspection {word['event']}\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n",
        "utf-8",
    )
    (folder / "notes").mkdir()
    for name in ("one", "two", "three"):
        (folder / "notes" / f"{name}.md").write_text(f"# {name}\n\nThe {word[name]} is due on Thursday.\n", "utf-8")
    amount = f"{random.randint(100_000, 999_999)}.25"
    with (folder / "meter.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["day", "kwh"], ["2026-11-28", "41.5"], ["2026-11-29", amount]])
    notes = {f"notes/{name}.md": word[name] for name in ("one", "two", "three")}
    return Material(folder, {"post.mbox": word["mail"], "team.ics": word["event"], "meter.csv": amount, **notes})


@pytest.fixture(scope="module")
def demo(grounds: Path) -> tuple[Material, dict[str, Any]]:
    material = make(grounds / "folder")
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": str(grounds)}
    done = subprocess.run(
        [sys.executable, "-m", "deploy.main", "dev-demo", "--json", "--folder", str(material.folder)],
        cwd=grounds, env={**env, "NIGHTSHIFT_HOME": str(grounds / "demo")}, capture_output=True, text=True,
        stdin=subprocess.DEVNULL, timeout=200, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return material, json.loads(done.stdout)


def test_the_brief_cites_each_file_with_what_stands_in_it(demo: tuple[Material, dict[str, Any]]) -> None:
    material, result = demo
    brief = result["brief"]
    assert {name: word for name, word in material.wanted.items() if word not in brief} == {}
    assert [name for name in material.wanted if name not in brief] == []


def test_the_brief_has_its_bill_and_lies_where_it_is_said_to_lie(demo: tuple[Material, dict[str, Any]]) -> None:
    _, result = demo
    assert result["cost_usd"] > 0
    assert [call["status"] for call in result["calls"]] == ["settled"] * len(result["calls"])
    assert result["brief"].strip() in Path(result["file"]).read_text("utf-8")


def test_the_stack_that_the_demo_started_is_gone(demo: tuple[Material, dict[str, Any]], grounds: Path) -> None:
    home = grounds / "demo"
    assert not (home / "stack.json").exists()
    left = [path.name for path in Path("/proc").iterdir() if path.name.isdigit() and str(home) in _environment(path)]
    assert left == []


def _environment(process: Path) -> str:
    try:
        return (process / "environ").read_text("utf-8", "replace")
    except OSError:
        return ""

"""`sessions`, `show`, `ledger`, `replay`, `approvals` and `jobs`: what a person reads, and what a script gets."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from api.cli.main import main
from tests.cli.surface import Surface

ROOT = Path(__file__).resolve().parents[2]


def test_sessions_are_read_over_all_pages(surface: Surface, capsys: pytest.CaptureFixture[str]) -> None:
    surface.sessions = {f"s-{n}": {"id": f"s-{n}", "title": f"no. {n}", "cost_usd": None} for n in range(120)}
    assert main(["sessions", "--limit", "110", "--json"]) == 0
    assert [row["id"] for row in json.loads(capsys.readouterr().out)] == [f"s-{n}" for n in range(110)]
    assert main(["sessions"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 21
    assert said[1].split()[:3] == ["s-0", "idle", "unknown"]


def test_show_prints_a_transcript_with_tool_calls_folded_to_a_line(
    surface: Surface, capsys: pytest.CaptureFixture[str]
) -> None:
    surface.sessions["s-1"] = {"id": "s-1", "title": "Pump", "model": "m-1", "status": "idle", "cost_usd": 0.1234}
    call = {"type": "tool_use", "id": "c-1", "name": "read_file", "input": {"path": "a.md"}}
    bad = {"type": "tool_use", "id": "c-2", "name": "read_file", "input": {"path": "../b"}}
    results = [
        {"type": "tool_result", "tool_use_id": "c-1", "content": [{"type": "text", "text": "x" * 1204}]},
        {"type": "tool_result", "tool_use_id": "c-2", "is_error": True, "content": "paths may not\ncontain .."},
    ]
    surface.messages["s-1"] = [
        {"author": "ada", "role": "user", "content": [{"type": "text", "text": "What of the \x1b[31mpump?"}]},
        {"author": "agent", "role": "assistant", "content": [{"type": "text", "text": "I look."}, call, bad]},
        {"author": "tools", "role": "user", "content": results},
        {"author": "agent", "role": "assistant", "content": [{"type": "text", "text": "It is loud.\nStill."}]},
    ]
    assert main(["show", "s-1"]) == 0
    said = capsys.readouterr().out
    assert "\x1b" not in said
    assert said.splitlines() == [
        "Pump · m-1 · $0.1234",
        "session s-1 · idle · -",
        "",
        "ada · -",
        "What of the ␛[31mpump?",
        "",
        "agent · -",
        "I look.",
        '  → read_file(path="a.md")',
        '  → read_file(path="../b")',
        "  ✓ read_file: 1,204 characters",
        "  ✗ read_file: paths may not contain ..",
        "",
        "agent · -",
        "It is loud.",
        "Still.",
    ]


def test_show_as_json_is_what_the_api_said(surface: Surface, capsys: pytest.CaptureFixture[str]) -> None:
    surface.sessions["s-1"] = {"id": "s-1"}
    surface.messages["s-1"] = [{"id": 1, "content": [{"type": "text", "text": "é\u2028"}]}]
    assert main(["show", "s-1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "session": {"id": "s-1"},
        "messages": surface.messages["s-1"],
        "children": [],
    }


def test_show_names_the_children_below_the_call_that_made_them(
    surface: Surface, capsys: pytest.CaptureFixture[str]
) -> None:
    surface.sessions["s-1"] = {"id": "s-1", "title": "Pump", "model": "m-1", "status": "idle", "cost_usd": 0.1}
    calls: list[dict[str, Any]] = [
        {"type": "tool_use", "id": f"c-{at}", "name": name, "input": {}}
        for at, name in enumerate(("read_file", "delegate_task"), 1)
    ]
    surface.messages["s-1"] = [
        {"author": "agent", "role": "assistant", "turn_id": "t-1", "step": 1, "content": calls},
        {"author": "agent", "role": "assistant", "turn_id": "t-1", "step": 2, "content": calls},
    ]
    child = {"parent_id": "t-1", "step": 1, "ordinal": 2, "steps_used": 3, "cost_usd": 0.25, "session_id": "s-9"}
    surface.children["s-1"] = [
        child | {"number": 1, "status": "done", "title": "hist\x1b[31mory"},
        child | {"number": 2, "status": "running", "title": "rest", "background": True, "cost_usd": 0.05},
    ]
    assert main(["show", "s-1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Pump · m-1 · $0.1000 and $0.3000 of 2 children"
    at = lines.index("  → delegate_task()")
    assert lines[at + 1 : at + 3] == [
        "    ↳ child 1 done · 3 steps · $0.2500 · hist␛[31mory · s-9",
        "    ↳ child 2 running · in the background · 3 steps · $0.0500 · rest · s-9",
    ]
    assert sum("↳" in line for line in lines) == 2
    surface.children["s-1"][1]["cost_usd"] = None
    assert main(["show", "s-1"]) == 0
    assert "and unknown of 2 children" in capsys.readouterr().out


def test_a_ledger_line_has_every_bucket_and_an_unknown_price_is_not_zero(
    surface: Surface, capsys: pytest.CaptureFixture[str]
) -> None:
    tokens = {"input": 1200, "output": 30, "cache_read": 40_000, "cache_write": 5}
    row = {"key": "2026-11-30", "label": "", "calls": 3, "tokens": tokens, "cost_usd": None}
    surface.lists["ledger"] = [row]
    surface.total = row | {"key": None, "label": "in all"}
    assert main(["ledger", "--by", "day"]) == 0
    assert surface.asked[0].query == {"by": "day"}
    assert capsys.readouterr().out.splitlines()[1].split() == [
        "2026-11-30", "3", "1,200", "30", "40,000", "5", "unknown",
    ]  # fmt: skip


def test_replay_writes_the_exact_bytes(surface: Surface) -> None:
    exact = '{"a":1e2,"text":"\u2028 é \\ud800","b":[1.0,  2]}'
    surface.replies["/v1/turns/t-1/replay"] = exact
    done = subprocess.run(
        [sys.executable, "-m", "api.cli", "replay", "t-1", "--step", "2"],
        cwd=ROOT,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.stdout == exact.encode()
    assert surface.asked[0].query == {"step": "2"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["sessions"], "no sessions yet: nightshift send TEXT begins one"),
        (["jobs"], "no jobs yet: nightshift jobs add NAME --cron '30 6 * * 1-5' --prompt TEXT"),
    ],
)
def test_a_list_without_a_row_says_what_would_make_one(
    surface: Surface, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    assert main(words) == 0
    assert capsys.readouterr().out == f"{said}\n"


def test_nothing_to_approve_is_said(surface: Surface, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["approvals"]) == 0
    assert capsys.readouterr().out == "nothing is pending\n"
    assert surface.asked[0].query == {"status": "pending"}


def test_a_job_is_made_with_absolute_paths_and_found_by_its_name(surface: Surface, tmp_path: Path) -> None:
    prompt = tmp_path / "p.md"
    prompt.write_text("the scaffold")
    words = ["--cron", "30 6 * * *", "--zone", "Europe/Berlin", "--prompt", f"@{prompt}", "--folder", "tests"]
    assert main(["jobs", "add", "morning", *words]) == 0
    assert surface.asked[0].body == {
        "name": "morning",
        "cron": "30 6 * * *",
        "zone": "Europe/Berlin",
        "prompt": "the scaffold",
        "folder": str(Path.cwd() / "tests"),
    }
    assert main(["jobs", "pause", "morning"]) == 0
    assert main(["jobs", "edit", "morning", "--cron", "0 7 * * *", "--unset", "cap-usd"]) == 0
    changes = [asked.body for asked in surface.asked if asked.method == "PATCH"]
    assert changes == [{"paused": True}, {"cron": "0 7 * * *", "cap_usd": None}]


def test_a_job_that_nobody_knows_is_told(surface: Surface, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["jobs", "run", "nonsense"]) == 1
    assert "no job is called 'nonsense'" in capsys.readouterr().err


@pytest.mark.parametrize(("no_colour", "coloured"), [("", True), ("1", False)])
def test_colour_is_for_terminals_and_no_color_is_honoured(surface: Surface, no_colour: str, coloured: bool) -> None:
    surface.sessions = {"s-1": {"id": "s-1", "title": "[bold]not markup[/bold]"}}
    master, slave = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "NO_COLOR": no_colour, "COLUMNS": "120"}
    done = subprocess.run(
        ["sh", "-c", f"{sys.executable} -m api.cli sessions; {sys.executable} -m api.cli show s-9"],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        cwd=ROOT,
        env=environment,
        timeout=60,
        check=False,
    )
    os.close(slave)
    shown = b""
    try:
        while piece := os.read(master, 65_536):
            shown += piece
    except OSError:
        pass
    os.close(master)
    assert done.returncode == 1
    assert b"[bold]not markup[/bold]" in shown
    assert (b"\x1b[3" in shown) is coloured

"""The demo, as a person runs it: from nothing but a home folder to a brief that cites what is in the input."""

from __future__ import annotations

import hashlib
import json
import os
import random
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Generator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from deploy.local.home import lock_holder
from tests.demo import sample

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 150
pytestmark = pytest.mark.timeout(2 * PATIENCE_S)


@dataclass(frozen=True, slots=True)
class Shown:
    """A demo that has run on the sample folder; its stack is still up."""

    home: Path
    folder: Path
    nonce: str
    result: dict[str, Any]
    progress: str
    before: str

    def nightshift(self, *words: str) -> subprocess.CompletedProcess[str]:
        return run(self.home, *words)


def _hears_ctrl_c() -> None:
    """A run in the background of a script has SIGINT ignored, and a child inherits that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def start(home: Path, *words: str, **environment: str) -> subprocess.Popen[str]:
    """A command of the console script, with nothing of the caller's settings."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NIGHTSHIFT_")}
    return subprocess.Popen(
        [sys.executable, "-m", "deploy.main", *words],
        cwd=ROOT,
        env={**kept, "NIGHTSHIFT_HOME": str(home), "PYTHONPATH": str(ROOT), **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=_hears_ctrl_c,  # noqa: PLW1509 - it calls nothing that a lock could hold
    )


def run(home: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    process = start(home, *words, **environment)
    out, err = process.communicate(timeout=PATIENCE_S)
    return subprocess.CompletedProcess(words, process.returncode, out, err)


def hide(folder: Path, nonce: str) -> None:
    """A note of random name and depth that holds the nonce."""
    place = folder.joinpath(*(secrets.token_hex(4) for _ in range(random.randint(1, 4))))
    place.mkdir(parents=True)
    (place / f"{secrets.token_hex(4)}.md").write_text(f"# Found\n\nThe word of the night is {nonce}.\n", "utf-8")


def digest(folder: Path) -> str:
    """Of every name, time and byte in it."""
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        state = path.stat()
        found.update(f"{path.relative_to(folder)} {state.st_mode} {state.st_mtime_ns} {state.st_size}\n".encode())
        if path.is_file():
            found.update(path.read_bytes())
    return found.hexdigest()


@pytest.fixture(scope="module")
def shown() -> Generator[Shown]:
    with tempfile.TemporaryDirectory(prefix="nsd-") as name:
        home, folder, nonce = Path(name) / "home", sample.make(Path(name) / "folder"), secrets.token_hex(8)
        hide(folder, nonce)
        before = digest(folder)
        try:
            done = run(home, "dev-demo", "--keep", "--json", "--folder", str(folder))
            assert done.returncode == 0, done.stderr
            yield Shown(home, folder, nonce, json.loads(done.stdout), done.stderr, before)
        finally:
            stopped = run(home, "dev-down")
            assert stopped.returncode == 0, stopped.stderr


def test_the_brief_cites_mail_calendar_notes_and_table(shown: Shown) -> None:
    brief = shown.result["brief"]
    for words in (
        sample.SUBJECT_ENCODED,
        sample.SUBJECT_ATTACHED,
        sample.SUBJECT_HTML,
        sample.APPOINTMENT,
        sample.WEEKLY,
        sample.NOTE_DUE,
        sample.TABLE_OUTLIER,
        "mail.mbox",
        "calendar.ics",
        "energy.csv",
    ):
        assert words in brief


def test_a_word_hidden_at_a_random_place_is_found_by_reading(shown: Shown) -> None:
    assert shown.nonce in shown.result["brief"]
    assert shown.result["tools"]["read_file"] >= 1


def test_the_folder_is_as_it_was(shown: Shown) -> None:
    assert digest(shown.folder) == shown.before


def test_the_bill_is_the_providers(shown: Shown) -> None:
    stack = json.loads((shown.home / "stack.json").read_text("utf-8"))
    headers = {"x-rehearsal-token": stack["rehearsal_token"]}
    ledger: dict[str, Any] = httpx.get(f"{stack['provider_url']}/rehearsal/ledger", headers=headers, timeout=10).json()
    assert len(shown.result["calls"]) == len(ledger["calls"])
    assert shown.result["rehearsal"] is True
    assert shown.result["cost_usd"] > 0
    assert shown.result["cost_usd"] == pytest.approx(ledger["usd"], rel=1e-6)


def test_the_brief_is_delivered_as_a_file_that_says_it_is_a_rehearsal(shown: Shown) -> None:
    text = Path(shown.result["file"]).read_text("utf-8")
    assert text.startswith("---\n")
    assert "rehearsal: true" in text
    assert shown.result["brief"].strip() in text


def test_progress_names_steps_tools_and_tokens(shown: Shown) -> None:
    assert "→ list_files(" in shown.progress
    assert "→ read_file(" in shown.progress
    assert "read from cache" in shown.progress
    assert "Rehearsal" in shown.progress


def test_two_agents_did_the_looking_one_for_the_history_one_for_the_rest(shown: Shown) -> None:
    children = shown.result["children"]
    assert [(child["number"], child["turn"]["status"], child["turn"]["class"]) for child in children] == [
        (1, "done", "child"),
        (2, "done", "child"),
    ]
    history, rest = (child["title"] for child in children)
    assert "the history" in history
    assert "all but the history" in rest
    for child in children:
        assert f"⇉ child {child['number']} begins: {child['title']}" in shown.progress
        assert f"⇇ child {child['number']} done · {child['turn']['steps_used']} steps · $" in shown.progress
        assert f"      [{child['number']}] → " in shown.progress
    own = shown.result["turn"]["cost_usd"]
    assert shown.result["cost_usd"] == pytest.approx(own + sum(child["turn"]["cost_usd"] for child in children))
    assert "## Who looked" in shown.result["brief"]
    assert "says so" in shown.result["brief"]  # a report is a self-report: the brief's writer looked


def test_the_kept_stack_is_in_order_and_the_brief_can_be_looked_into(shown: Shown) -> None:
    doctor = shown.nightshift("doctor", "--json")
    assert doctor.returncode == 0, doctor.stdout
    session, turn = shown.result["session"]["id"], shown.result["turn"]["id"]
    transcript = shown.nightshift("show", session)
    assert "→ delegate_task(" in transcript.stdout
    assert sample.APPOINTMENT in transcript.stdout
    rest = shown.nightshift("show", shown.result["children"][1]["turn"]["session_id"])
    assert "→ list_files(" in rest.stdout
    request = json.loads(shown.nightshift("replay", turn, "--step", "1").stdout)
    assert "overnight brief" in json.dumps(request["messages"])
    assert shown.nightshift("replay", turn, "--calls").stdout.count("settled") == len(shown.result["calls"]) - sum(
        child["calls"] for child in shown.result["children"]
    )
    assert "main" in shown.nightshift("ledger", "--by", "purpose").stdout


def test_the_session_goes_on_from_the_command_line(shown: Shown) -> None:
    session = shown.result["session"]["id"]
    done = shown.nightshift("send", "what do you know of the pump?", "--session", session, "--wait")
    assert done.returncode == 0, done.stderr
    assert "ehearsal" in done.stdout


def test_no_job_is_left_that_would_come_due_tomorrow(shown: Shown) -> None:
    assert json.loads(shown.nightshift("jobs", "--json").stdout) == []


def test_on_this_repository_the_brief_names_a_real_commit_and_the_stack_is_gone_afterwards(tmp_path: Path) -> None:
    home = tmp_path / "home"
    done = run(home, "dev-demo")
    assert done.returncode == 0, done.stderr
    log = subprocess.run(
        ["git", "log", "--format=%h", "--abbrev=7"], cwd=ROOT, capture_output=True, text=True, timeout=30, check=True
    )
    assert any(commit in done.stdout for commit in log.stdout.split())
    assert "This is the rehearsal provider's bill" in done.stdout
    assert not (home / "stack.json").exists()


def test_a_folder_that_is_not_there_is_told_in_a_sentence(tmp_path: Path) -> None:
    done = run(tmp_path / "home", "dev-demo", "--folder", str(tmp_path / "nowhere"))
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "is not a folder" in done.stderr


def test_a_stack_that_cannot_start_is_told_with_its_own_words(tmp_path: Path) -> None:
    done = run(tmp_path / "home", "dev-demo", NIGHTSHIFT_DATABASE_URL="postgresql://nobody@127.0.0.1:1/none")
    assert done.returncode == 1
    assert "The stack did not start" in done.stderr
    assert "Traceback" not in done.stderr


class _Refusing(BaseHTTPRequestHandler):
    """A provider that takes no key."""

    def do_POST(self) -> None:
        body = b'{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}'
        self.send_response(401)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002, ARG002 - the standard library's signature
        return


def test_a_run_that_fails_is_told_with_the_last_lines_of_the_logs(tmp_path: Path) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Refusing)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        url = f"http://127.0.0.1:{server.server_address[1]}"
        done = run(tmp_path / "home", "dev-demo", NIGHTSHIFT_PROVIDER_BASE_URL=url, NIGHTSHIFT_PROVIDER_KEY="none")
    finally:
        server.shutdown()
        server.server_close()
    assert done.returncode == 1, done.stderr
    assert "The demo failed." in done.stderr
    assert "worker     |" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "home" / "stack.json").exists()


def test_ctrl_c_stops_the_stack_that_the_demo_started(tmp_path: Path) -> None:
    home = tmp_path / "home"
    demo = start(home, "dev-demo", NIGHTSHIFT_PROVIDER_BASE_URL="http://127.0.0.1:1", NIGHTSHIFT_PROVIDER_KEY="none")
    assert demo.stderr is not None
    for line in demo.stderr:
        if "is due now" in line:
            demo.send_signal(signal.SIGINT)
            break
    _, rest = demo.communicate(timeout=PATIENCE_S)
    assert demo.returncode == 130
    assert "Traceback" not in rest
    assert lock_holder(home) is None

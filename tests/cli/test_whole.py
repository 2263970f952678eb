"""The command line on a whole stack, while things are slow, steered, cancelled, killed, and too dear."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import httpx
import pytest

from deploy.demo.stack import Stack, running
from tests.cli.typist import ROOT, Typist

PATIENCE_S = 90
pytestmark = pytest.mark.timeout(180)


class Whole:
    """A running stack, its command line, and its provider's scripts."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        kept = {name: value for name, value in os.environ.items() if not name.startswith("NIGHTSHIFT_")}
        self.environment = {**kept, "NIGHTSHIFT_HOME": str(stack.home), "PYTHONPATH": str(ROOT)}

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "api.cli", *words],
            cwd=ROOT,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        process = self.start(*words)
        out, err = process.communicate(timeout=PATIENCE_S)
        return subprocess.CompletedProcess(words, process.returncode, out, err)

    def script(self, name: str, *replies: dict[str, Any]) -> str:
        """The word that makes the provider answer so."""
        self._provider("POST", "script", json={"name": name, "replies": replies})
        return f"script:{name}"

    def await_call(self, session: str, **counts: int) -> None:
        self._provider("GET", "wait", params={"session": session, "timeout_s": 30, **counts})

    def _provider(self, method: str, path: str, **more: Any) -> None:
        url = f"{self.stack.facts['provider_url']}/rehearsal/{path}"
        headers = {"x-rehearsal-token": self.stack.facts["rehearsal_token"]}
        httpx.request(method, url, headers=headers, timeout=40, **more).raise_for_status()

    def pids(self, role: str) -> list[int]:
        return json.loads((self.stack.home / "stack.json").read_text("utf-8"))["pids"][role]

    def new_session(self) -> str:
        answer = httpx.post(
            f"{self.stack.facts['url']}/v1/sessions",
            json={},
            headers={"authorization": f"Bearer {self.stack.facts['token']}"},
            timeout=20,
        )
        return str(answer.raise_for_status().json()["id"])


@pytest.fixture(scope="module")
def whole() -> Generator[Whole]:
    with tempfile.TemporaryDirectory(prefix="nsc-") as name, running(Path(name) / "home", keep=False) as stack:
        yield Whole(stack)


def _slow(text: str, *, delay_s: float = 0.0, gap_s: float = 0.1, chunks: int = 20) -> dict[str, Any]:
    return {"text": text, "delay_s": delay_s, "gap_s": gap_s, "chunks": chunks}


def test_an_answer_comes_alone_on_stdout(whole: Whole) -> None:
    word = whole.script("plain", {"text": "All is well."})
    done = whole.run("send", word, "--wait")
    assert (done.returncode, done.stdout) == (0, "All is well.\n")


def test_what_a_watcher_saw_equals_the_answer_though_the_worker_was_killed(whole: Whole) -> None:
    text = "The whole answer, in many pieces, of which the first ones are sent twice. " * 4
    session = whole.new_session()
    word = whole.script("killed", _slow(text, chunks=40), _slow(text, gap_s=0.0))
    sent = json.loads(whole.run("send", word, "--session", session, "--json").stdout)
    watcher = whole.start("watch", sent["turn"]["id"], "--json")
    assert watcher.stdout is not None
    lines: list[dict[str, Any]] = []
    for line in watcher.stdout:
        lines.append(json.loads(line))
        if lines[-1]["event"] == "text.delta" and sum(one["event"] == "text.delta" for one in lines) == 3:
            os.kill(whole.pids("worker")[0], signal.SIGKILL)
    assert watcher.wait(PATIENCE_S) == 0
    assert lines[-1]["data"]["answer"] == text
    assert _folded(lines) == text
    row = json.loads(whole.run("send", "thanks", "--session", session, "--wait", "--json").stdout)
    assert row["status"] == "done"


def _folded(lines: list[dict[str, Any]]) -> str:
    """By the rules of docs/events.md, in another way than the client's own."""
    texts: dict[int, str] = {}
    for line in lines:
        data = line["data"]
        match line["event"]:
            case "text.delta":
                texts[data["step"]] = texts.get(data["step"], "") + data["text"]
            case "step.restarted":
                texts[data["step"]] = ""
            case "step.finished":
                texts[data["step"]] = data["text"]
            case "snapshot":
                texts = {one["step"]: one["text"] for one in data["steps"]}
            case _:
                pass
    return texts[max(step for step, text in texts.items() if text)]


def test_a_chat_is_steered_and_cancelled_and_goes_on(whole: Whole) -> None:
    look = {"text": "I look around.", "tools": [{"name": "list_files", "input": {"path": "."}}], "delay_s": 1.0}
    word = whole.script("steered", look, {"text": "With the steering read."})
    typist = Typist(environment=whole.environment)
    try:
        typist.type(word)
        typist.see("session ")
        typist.type("look at b.md too")
        typist.see("With the steering read.")
        typist.see("look at b.md too", count=2)  # typed, and told back as an event
        slow = whole.script("slow", _slow("word " * 200, chunks=200))
        typist.see("> ", count=2)
        typist.type(slow)
        typist.see("word word")
        typist.interrupt()
        typist.see("cancelled")
        typist.type(whole.script("after", {"text": "Still the same session."}))
        typist.see("Still the same session.")
        typist.type("/quit")
        assert typist.leave() == 0
    finally:
        typist.close()
    session = typist.shown.partition("nightshift chat --session ")[2].split()[0]
    transcript = whole.run("show", session).stdout
    for words in ("look at b.md too", "With the steering read.", "Still the same session."):
        assert words in transcript


def test_a_cap_that_is_too_small_ends_with_four_and_is_raised_as_it_says(whole: Whole) -> None:
    done = whole.run("send", "hello", "--cap-usd", "0.000001", "--wait")
    assert done.returncode == 4
    assert "waiting for money" in done.stderr
    (command,) = [line.strip() for line in done.stderr.splitlines() if line.strip().startswith("nightshift cap")]
    assert whole.run(*command.split()[1:]).returncode == 0
    watched = whole.run("watch", command.split()[3])
    assert watched.returncode == 0, watched.stderr


def test_a_busy_session_refuses_where_it_is_asked_to(whole: Whole) -> None:
    session = whole.new_session()
    whole.run("send", whole.script("busy", _slow("word " * 200, chunks=200)), "--session", session)
    whole.await_call(session, calls=1)
    done = whole.run("send", "me too", "--session", session, "--on-busy", "reject")
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "Traceback" not in done.stderr


def test_a_jobs_whole_life_from_the_command_line(whole: Whole, tmp_path: Path) -> None:
    word = whole.script("job", {"text": "The brief of this job."})
    words = (
        "--cron",
        "30 2 * * *",
        "--zone",
        "Europe/Berlin",
        "--prompt",
        f"Write it. {word}",
        "--folder",
        str(tmp_path),
    )
    added = whole.run("jobs", "add", "night", *words)
    assert added.returncode == 0, added.stderr
    explained = whole.run("jobs", "explain", "night").stdout
    assert "Europe/Berlin" in explained
    assert "UTC" in explained
    done = whole.run("jobs", "run", "night", "--wait")
    assert (done.returncode, done.stdout) == (0, "The brief of this job.\n")
    assert whole.run("jobs", "pause", "night").stdout.endswith("is paused\n")
    assert "paused" in whole.run("jobs").stdout
    assert "comes due next at" in whole.run("jobs", "resume", "night").stdout
    tmp_path.rmdir()
    gone = whole.run("jobs", "run", "night", "--wait")
    assert gone.returncode == 1
    assert "folder_missing" in gone.stderr
    runs = json.loads(whole.run("jobs", "runs", "night", "--json").stdout)
    assert sorted(row["status"] for row in runs) == ["done", "failed"]
    wrong = whole.run("jobs", "edit", "night", "--cron", "99 * * * *")
    assert wrong.returncode == 2
    assert whole.run("jobs", "remove", "night").returncode == 0
    assert whole.run("jobs", "run", "night").returncode == 1


def test_a_turn_that_has_ended_is_watched_to_its_end_without_a_word_of_a_lost_connection(whole: Whole) -> None:
    row = json.loads(whole.run("send", whole.script("over", {"text": "Over."}), "--wait", "--json").stdout)
    first = whole.run("watch", row["id"], "--json")
    last_id = json.loads(first.stdout.splitlines()[-1])["id"]
    again = whole.run("watch", row["id"], "--json", "--from", last_id)
    assert json.loads(again.stdout)["data"]["answer"] == "Over."
    assert "lost" not in first.stderr + again.stderr


def test_a_person_is_added_and_their_token_works_until_it_is_revoked(whole: Whole) -> None:
    made = whole.run("people", "add", "ada of the house", "--role", "approver")
    assert made.returncode == 0, made.stderr
    assert "tokens add" in made.stderr
    token = whole.run("tokens", "add", "ada of the house", "--label", "laptop").stdout.strip()

    def signed_in() -> int:
        headers = {"authorization": f"Bearer {token}"}
        return httpx.get(f"{whole.stack.facts['url']}/v1/approvals", headers=headers, timeout=20).status_code

    assert signed_in() == 200
    listed = whole.run("tokens").stdout
    assert token not in listed
    (line,) = [line for line in listed.splitlines() if "ada of the house" in line]
    assert "laptop" in line
    assert whole.run("people", "role", "ada of the house", "viewer").stdout.startswith("ada of the house · viewer")
    assert whole.run("tokens", "revoke", line.split()[0]).returncode == 0
    time.sleep(1.2)  # what an API process remembers of a token
    assert signed_in() == 401
    assert whole.run("people", "disable", "ada of the house").stdout.count("disabled") == 1
    assert whole.run("tokens", "add", "nobody").returncode == 2
    assert whole.run("people", "add", "ada of the house").returncode == 1

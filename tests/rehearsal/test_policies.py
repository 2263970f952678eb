"""Proves the honest policies: what a brief says was seen through tools, and what was not seen is not said."""

import os
import random
import secrets
import subprocess
from pathlib import Path

import pytest

from tests.rehearsal import hands
from tests.rehearsal.served import Served, serve

ALL = ["list_files", "read_file", "search_files", "git_log"]
ASK = "Write the overnight brief on this folder."
REHEARSAL = "*Rehearsal: written by the local stand-in model"


def buried(root: Path) -> tuple[str, str]:
    """A nonce in a file of random name, ending and depth, among other files; its path and the nonce."""
    for name in ("readme.md", "a/one.txt", "a/b/two.md", "c/three.py"):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("Nothing of note stands here.\nIt goes on like this.\n")
    nonce = f"nonce-{secrets.token_hex(8)}"
    depth = random.randint(1, 6)
    folder = root.joinpath(*(secrets.token_hex(3) for _ in range(depth)))
    folder.mkdir(parents=True)
    ending = random.choice(("", ".txt", ".md", ".log", ".csv", ".dat"))
    path = folder / f"{secrets.token_hex(4)}{ending}"
    path.write_text(f"first line\nthe word is {nonce}\nlast line\n")
    return path.relative_to(root).as_posix(), nonce


@pytest.mark.parametrize("_", range(6))
def test_a_nonce_in_a_file_of_random_name_and_depth_is_in_the_brief(provider: Served, tmp_path: Path, _: int) -> None:
    path, nonce = buried(tmp_path)
    done = hands.run(provider, tmp_path, ASK, ALL)
    assert nonce in done.answer, path
    assert path in done.answer
    assert done.answer.startswith(REHEARSAL)
    assert done.steps <= 12


def test_without_a_read_tool_the_brief_cannot_hold_the_nonce(provider: Served, tmp_path: Path) -> None:
    path, nonce = buried(tmp_path)
    done = hands.run(provider, tmp_path, ASK, ["list_files"])
    assert nonce not in done.answer
    assert path not in [call[1].get("path") for call in done.calls if call[0] == "read_file"]
    assert "No tool here reads files" in done.answer
    assert REHEARSAL in done.answer


def test_the_brief_does_not_need_the_provider_to_see_the_files(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    _, nonce = buried(tmp_path / "work")
    with serve(empty) as provider:
        assert nonce in hands.run(provider, tmp_path / "work", ASK, ALL).answer
    assert list(empty.iterdir()) == []


MAILBOX = """From ann@example.org Mon Nov 30 08:00:00 2026
From: Ann <ann@example.org>
Date: Mon, 30 Nov 2026 08:00:00 +0000
Subject: Invoice 4711 is open

Hello all,
the invoice INV-4711 is due on Friday. Could you confirm the payment?

From bob@example.org Mon Nov 30 09:00:00 2026
From: Bob <bob@example.org>
Subject: Lunch

Anyone for lunch at noon today?
"""
CALENDAR = """BEGIN:VCALENDAR
BEGIN:VEVENT
DTSTART:20261201T090000Z
SUMMARY:Release review
LOCATION:Room 4
END:VEVENT
END:VCALENDAR
"""
SALES = "day,amount\n2026-11-01,10.5\n2026-11-02,20\n2026-11-03,\n"
LOG = "2026-11-30 01:00:00 INFO start\n2026-11-30 01:00:01 ERROR disk is full\n2026-11-30 01:00:02 WARN slow\n"


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    for name, text in {
        "mail/inbox.mbox": MAILBOX,
        "team.ics": CALENDAR,
        "data/sales.csv": SALES,
        "logs/app.log": LOG,
        "notes/move.md": "# Move\n\nWe move the database on 2026-12-04.\n- [ ] ask for the restore drill\n",
        "notes/ideas.txt": "Ideas\nA shelf for the north wall\n",
        "notes/done.txt": "The old heater is gone.\n",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_mail_calendar_notes_tables_and_logs_are_cited_each_in_its_section(provider: Served, desk: Path) -> None:
    answer = hands.run(provider, desk, ASK, ["list_files", "read_file"]).answer
    parts = {part.split("\n", 1)[0]: part for part in answer.split("\n## ")}
    assert "**Invoice 4711 is open** from Ann" in parts["Mail"]
    assert "**Lunch** from Bob" in parts["Mail"]
    assert "INV-4711 is due on Friday" in parts["Due, and dates"]
    assert "`notes/move.md:4`" in parts["Due, and dates"]
    assert "2026-12-01 09:00 | Release review | at Room 4 (`team.ics:2`)" in parts["Calendar"]
    assert "We move the database on 2026-12-04." in parts["Notes"]
    assert "A shelf for the north wall" in parts["Notes"]
    assert "`data/sales.csv`: 3 rows, columns day, amount" in parts["Numbers"]
    assert "amount: sum 30.50, from 10.50 to 20 (1 row without a number)" in parts["Numbers"]
    assert "3 lines, 1 error, 1 warning" in parts["Logs"]
    assert "disk is full" in parts["Logs"]
    assert "`notes/done.txt` (1 line)" in parts["Files read"]


def test_a_table_that_was_cut_is_said_to_be_partial(provider: Served, tmp_path: Path) -> None:
    rows = "".join(f"{number},{number}\n" for number in range(2_000))
    (tmp_path / "big.csv").write_text(f"key,value\n{rows}")
    answer = hands.run(provider, tmp_path, ASK, ["list_files", "read_file"]).answer
    assert "only part of it was read" in answer
    assert "was not read whole" in answer


def test_commits_are_cited_by_hash(provider: Served, tmp_path: Path) -> None:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.org",
        "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.org",
    }  # fmt: skip

    def git(*words: str) -> str:
        command = ["git", "-C", str(tmp_path), *words]
        return subprocess.run(command, env=environment, check=True, capture_output=True, text=True, timeout=30).stdout

    git("init", "-q")
    for number, subject in enumerate(("Add the press", "Fix the press", "Rename the press")):
        (tmp_path / "press.txt").write_text(f"{number}\n")
        git("add", ".")
        git("commit", "-qm", subject)
    head = git("rev-parse", "--short", "HEAD").strip()
    answer = hands.run(provider, tmp_path, ASK, ALL).answer
    assert f"`{head}`" in answer
    assert "3 commits by 1 author" in answer
    assert "fixes 1" in answer
    assert "Rename the press" in answer


def test_a_named_file_is_read_and_nothing_else(provider: Served, desk: Path) -> None:
    done = hands.run(provider, desk, "Read notes/ideas.txt and show me what it says.", ALL)
    assert done.calls == [("read_file", {"path": "notes/ideas.txt"})]
    assert "A shelf for the north wall" in done.answer


def test_a_failed_tool_is_told_and_does_not_stop_the_brief(provider: Served, desk: Path) -> None:
    done = hands.run(provider, desk, ASK, ALL)
    assert "git_log" in done.answer.split("## Not done")[1]
    assert "Invoice 4711" in done.answer


def test_a_follow_up_is_answered_from_the_transcript_without_new_calls(provider: Served, desk: Path) -> None:
    first = hands.run(provider, desk, ASK, ALL)
    then = hands.run(provider, desk, "When does the database move?", ALL, first.messages)
    assert then.calls == []
    assert "We move the database on 2026-12-04." in then.answer
    assert "notes/move.md:3" in then.answer
    assert REHEARSAL in then.answer


def test_who_breaks_in_between_two_steps_does_not_make_it_read_again(provider: Served, desk: Path) -> None:
    first = hands.run(provider, desk, ASK, ALL)
    reads = [call for call in first.calls if call[0] == "read_file"]
    then = hands.run(provider, desk, "And mind the mail, please.", ALL, first.messages[:-1])
    assert (len(reads), then.calls) == (7, [])
    assert "“Invoice 4711" not in then.answer
    assert "**Invoice 4711 is open**" in then.answer


def test_what_was_taken_out_of_the_prompt_is_paged_back_before_the_brief_is_written(
    provider: Served, desk: Path
) -> None:
    first = hands.run(provider, desk, ASK, ALL)
    kept: list[hands.Json] = first.messages[:-1]
    for message in kept:
        for block in message["content"]:
            if block["type"] == "tool_result" and "Invoice 4711" in block["content"][0]["text"]:
                (desk / "result-7.0").write_text(block["content"][0]["text"], "utf-8")
                line = "[read_file: 604 tokens left out; read_artifact result:7.0 shows it again; it begins: From]"
                block["content"] = [{"type": "text", "text": line}]
    then = hands.run(provider, desk, "And mind the mail, please.", [*ALL, "read_artifact"], kept)
    assert [call for call in then.calls if call[0] == "read_artifact"] == [("read_artifact", {"handle": "result:7.0"})]
    assert "**Invoice 4711 is open**" in then.answer
    without = hands.run(provider, desk, "And mind the mail, please.", ALL, kept)
    assert without.calls == []
    assert "**Invoice 4711 is open**" not in without.answer


def test_a_final_call_without_tools_summarises_what_the_transcript_shows(provider: Served, desk: Path) -> None:
    first = hands.run(provider, desk, ASK, ["list_files", "read_file"])
    asked: list[hands.Json] = first.messages[:-1]
    reply = provider.raw({"model": "claude-sonnet-5-5", "max_tokens": 9000, "messages": asked}).json()
    text = reply["content"][0]["text"]
    assert text.startswith(REHEARSAL)
    assert "INV-4711" in text


def test_plain_talk_is_answered_honestly_with_the_person_s_own_words(provider: Served, tmp_path: Path) -> None:
    done = hands.run(provider, tmp_path, "Hello, nice weather in Bonn.", ALL)
    assert (done.steps, done.calls) == (0, [])
    assert REHEARSAL in done.answer
    assert "“Hello, nice weather in Bonn.”" in done.answer


def test_every_text_of_the_walk_says_that_it_is_a_rehearsal(provider: Served, desk: Path) -> None:
    done = hands.run(provider, desk, ASK, ALL)
    texts = [
        block["text"]
        for message in done.messages
        if message["role"] == "assistant"
        for block in message["content"]
        if block["type"] == "text"
    ]
    assert len(texts) == done.steps + 1
    assert all("Rehearsal" in text for text in texts)

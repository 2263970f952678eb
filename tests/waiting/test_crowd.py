"""Turns that wait hold no slot: one worker with one slot, a hundred turns parked, and a question that is answered."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.chaos.rig import Rig, slack, stack
from tests.ground import ROOT
from tests.waiting import crowd

COUNT = 100


@pytest.fixture(scope="module")
def narrow() -> Generator[Rig]:
    """One worker with one slot."""
    with stack(workers=1, concurrency=1, settings={"approve_tools": "write_file"}) as rig:
        yield rig


def test_a_hundred_parked_turns_hold_no_slot_and_all_end_once_they_are_allowed(narrow: Rig) -> None:
    waiting = crowd.writing(narrow, COUNT)
    waiting.await_parked("approval", 60)

    session = narrow.session()
    narrow.script(session, [{"text": "forty-two"}])
    answered = narrow.ended(narrow.send(session, "a short question"), 10)
    assert answered["answer"] == "forty-two"
    assert waiting.parked("approval") == COUNT

    requests = crowd.pending(narrow)
    assert {row["turn_id"] for row in requests} == set(waiting.turns)
    crowd.approve(narrow, [row["id"] for row in requests])
    rows = narrow.all_ended(waiting.turns, 60 * slack())
    assert {(row["status"], row["answer"]) for row in rows} == {("done", "Done.")}
    calls = narrow.provider.ledger()
    for session in waiting.sessions:
        assert sum(call["session"] == session for call in calls) == 2
        assert [path.name for path in (narrow.home / "workspaces" / session).iterdir()] == ["a.txt"]
    assert crowd.pending(narrow) == []


def test_what_waited_for_a_person_is_told_by_the_command_line(narrow: Rig, tmp_path: Path) -> None:
    """The words and exit codes of `tests/cli/test_waiting.py`, by the real thing."""
    facts = narrow.facts
    env = {
        "PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "NIGHTSHIFT_URL": facts["url"],
        "NIGHTSHIFT_TOKEN": facts["token"], "NIGHTSHIFT_HOME": str(tmp_path),
    }  # fmt: skip

    def nightshift(*words: str) -> tuple[int, str, str]:
        done = subprocess.run(
            [sys.executable, "-m", "deploy.main", *words], env=env, cwd=tmp_path, capture_output=True, text=True,
            timeout=60, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout, done.stderr

    narrow.provider.post("script", crowd.WRITES)
    code, _, err = nightshift("send", "write it", "--wait")
    assert code == 3, err
    assert "is waiting for approval since" in err
    (request,) = crowd.pending(narrow)
    assert f"nightshift approve {request['id']}" in err
    assert nightshift("watch", request["turn_id"])[0] == 3
    code, out, _ = nightshift("approve", request["id"], "--note", "go on")
    assert (code, out.startswith("approved: write_file(")) == (0, True)
    code, out, err = nightshift("watch", request["turn_id"])
    assert (code, "Done." in out) == (0, True), err
    assert "✓ write_file approved by" in err
    code, _, err = nightshift("deny", request["id"])
    assert (code, "already_decided" in err) == (1, True)

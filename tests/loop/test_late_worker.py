"""A worker that is frozen between its last check and the start of a tool's process, until others have said that nobody
knows what became of the run: when it goes on, the launcher refuses, and what they said stays true."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ground import ROOT, Ground, Rehearsal, until
from tests.loop.dying import take_away
from tests.tools import signalling
from workers.tools import registry


def test_what_was_told_to_be_unknown_does_not_begin_when_its_worker_goes_on(
    worker: Ground, provider: Rehearsal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fifo, pauses = tmp_path / "word", tmp_path / "pauses"
    os.mkfifo(fifo)
    pauses.mkdir()
    heard = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    tool = signalling.tool(fifo)
    monkeypatch.setitem(vars(registry)["_ALL"], tool.name, tool)
    session = worker.session()
    provider.script([{"tools": [{"name": tool.name, "input": {}}]}, {"text": "I see"}], session=str(session))
    turn = worker.turn(session, "say the word")
    settings = worker.settings
    arguments = [
        settings.database_url, settings.redis_url, settings.provider_base_url or "", str(tmp_path),
        f"starting:{pauses}", str(fifo),
    ]  # fmt: skip
    with subprocess.Popen(
        [sys.executable, "-m", "tests.loop.late_worker", *arguments], cwd=ROOT, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as late:  # fmt: skip
        assert late.stdin is not None
        assert late.stdout is not None
        boot = late.stdout.readline().strip()
        late.stdin.write("look\n")
        late.stdin.flush()
        until((pauses / str(late.pid)).exists, 20, "the moment before its process starts")
        os.kill(late.pid, signal.SIGSTOP)
        over = "select 1 from workers where boot_id = %s and lease_until < clock_timestamp()"
        until(lambda: worker.rows(over, boot), 20, "the end of its lease")
        take_away(worker, turn, session)
        worker.look()
        before = worker.rows("select * from tool_runs where turn = %s", turn)

        (pauses / "go").touch()
        os.kill(late.pid, signal.SIGCONT)

        assert late.stdout.readline() == "ran 1\n"
        late.kill()
    assert signalling.said(heard) == b""
    os.close(heard)
    assert [row["status"] for row in before] == ["unknown"]
    assert worker.rows("select * from tool_runs where turn = %s", turn) == before
    assert worker.view(turn)["status"] == "done"

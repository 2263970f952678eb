"""A worker that is frozen in a run until others have said that nobody knows what became of it: when it goes on, with
its lease there again, what they said stays true. Between its last check and the start of a tool's process the launcher
refuses; before its last check, that check does."""

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
from workers.pause import Point
from workers.tools import registry


@pytest.mark.parametrize("point", [Point.STARTING, Point.IN_TOOL])
def test_what_was_told_to_be_unknown_does_not_happen_when_its_worker_goes_on(
    worker: Ground, provider: Rehearsal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: Point
) -> None:
    fifo, pauses = tmp_path / "word", tmp_path / "pauses"
    os.mkfifo(fifo)
    pauses.mkdir()
    heard = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    tool = signalling.tool(fifo, point)
    monkeypatch.setitem(vars(registry)["_ALL"], tool.name, tool)
    session = worker.session()
    provider.script([{"tools": [{"name": tool.name, "input": {}}]}, {"text": "I see"}], session=str(session))
    turn = worker.turn(session, "say the word")
    settings = worker.settings
    arguments = [
        settings.database_url, settings.redis_url, settings.provider_base_url or "", str(tmp_path),
        f"{point}:{pauses}", str(fifo),
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
        until((pauses / str(late.pid)).exists, 20, "the point")
        os.kill(late.pid, signal.SIGSTOP)
        lease = "select lease_until > clock_timestamp() as runs from workers where boot_id = %s"
        until(lambda: not worker.one(lease, boot)["runs"], 20, "the end of its lease")
        take_away(worker, turn, session)
        worker.look()
        before = worker.rows("select * from tool_runs where turn = %s", turn)

        os.kill(late.pid, signal.SIGCONT)
        until(lambda: worker.one(lease, boot)["runs"], 20, "a lease that is there again")
        (pauses / "go").touch()

        assert late.stdout.readline() == "ran 1\n"
        late.kill()
    assert signalling.said(heard) == b""
    os.close(heard)
    assert [row["status"] for row in before] == ["unknown"]
    assert worker.rows("select * from tool_runs where turn = %s", turn) == before
    assert worker.view(turn)["status"] == "done"

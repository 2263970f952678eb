"""SIGSTOP of one worker of two, between two statements, for longer than its lease; then it goes on, and is late.
The drill freezes workers at the other points."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from tests.chaos import late
from tests.chaos.rig import Rig, stack

LEASE_S = 3


@pytest.fixture(scope="module")
def brief() -> Generator[Rig]:
    """Two workers with a short lease."""
    with stack(workers=2, concurrency=4, settings={"lease_s": LEASE_S, "heartbeat_s": 1}) as rig:
        yield rig


@pytest.mark.parametrize("point", ["claiming", "before_tool", "finishing"])
def test_a_worker_frozen_past_its_lease_writes_nothing_when_it_goes_on(brief: Rig, point: str) -> None:
    found = late.frozen_at(brief, point, seconds=LEASE_S * 2)

    assert found.figures.clean(), found.figures
    assert found.figures.takeovers == len(found.taken)
    assert point == "claiming" or found.taken, "it held nothing"
    assert found.wrote == {}
    if point == "before_tool":
        _acted_once(brief, found)


def _acted_once(rig: Rig, found: late.Late) -> None:
    """Where the run was answered as unknown, the thawed worker did not act behind the model's back. Of its other turns
    one may have acted just before it froze, and told nobody: that file is older than the thaw."""
    rows = rig.rows(
        "select r.status, s.workspace from tool_runs r join sessions s on s.id = r.session"
        " where r.turn = any(%s::uuid[])",
        found.taken,
    )
    files = [Path(row["workspace"]) / "once.txt" for row in rows if row["status"] == "unknown"]
    assert files
    assert not all(file.exists() for file in files), "the run that had not acted when it froze has acted"
    assert [file for file in files if file.exists() and file.stat().st_mtime >= found.thawed] == []

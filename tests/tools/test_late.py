"""The launcher begins nothing after the deadline that was handed to it, however long it, or its worker, stood still."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager

import pytest

from shared.boottime import boottime
from shared.values import Repeat
from tests.ground import until
from tests.tools import signalling
from tests.tools.conftest import Bench
from tests.tools.test_children import children_of, launcher_pid
from workers.pause import Point
from workers.tools import jobs, launcher
from workers.tools.context import Came, ToolContext, ToolLost, ToolResult, ToolStopped


@pytest.fixture
def pipe() -> Generator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


@contextmanager
def _frozen(pid: int) -> Generator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def _acting(context: ToolContext, pipe: int) -> tuple[threading.Thread, list[object]]:
    """The run in a thread of its own, and what comes of it."""
    came: list[object] = []

    def run() -> None:
        try:
            came.append(signalling.act(context, pipe).end)
        except (ToolStopped, ToolLost) as error:
            came.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, came


def test_a_process_that_may_run_once_runs(bench: Bench, pipe: tuple[int, int]) -> None:
    """The proof that the tests below would see it."""
    bench.repeat = Repeat.ONCE
    assert signalling.act(bench.context(), pipe[1]).end == 0
    assert signalling.said(pipe[0]) == signalling.WORD


def test_a_launcher_that_stood_still_until_the_lease_was_over_begins_nothing(
    bench: Bench, pipe: tuple[int, int]
) -> None:
    over = boottime() + 0.3
    bench.repeat, bench.act_until = Repeat.ONCE, lambda: over
    with _frozen(launcher_pid()):
        thread, came = _acting(bench.context(), pipe[1])
        until(lambda: boottime() > over, 5, "the end of the lease")
    thread.join(10)
    (stopped,) = came
    assert isinstance(stopped, ToolStopped)
    assert "nothing was changed" in stopped.message
    assert signalling.said(pipe[0]) == b""


def test_a_worker_that_stood_still_between_its_check_and_the_start_begins_nothing(
    bench: Bench, pipe: tuple[int, int]
) -> None:
    """Its lease is there again by then, as a thawed worker's is; what it hands over is the deadline of its check."""
    over = boottime() + 0.3
    bench.repeat = Repeat.ONCE
    bench.act_until = lambda: over if boottime() < over else boottime() + 60

    def stands_still(point: Point) -> None:
        if point is Point.STARTING:
            until(lambda: boottime() > over, 5, "the end of the lease")

    bench.pausing = stands_still
    thread, came = _acting(bench.context(), pipe[1])
    thread.join(10)
    assert [type(one) for one in came] == [ToolStopped]
    assert signalling.said(pipe[0]) == b""


def test_a_question_that_came_too_late_is_asked_again_once_the_lease_is_back(bench: Bench) -> None:
    """An outage of the database costs a read no result: there is nothing that others could have been told wrongly."""
    (bench.workspace / "a.txt").write_text("needle")
    begun, over = boottime(), boottime() + 0.3
    bench.act_until = lambda: over if boottime() < begun + 0.6 else boottime() + 60
    with _frozen(launcher_pid()):
        found: list[str] = []
        thread = threading.Thread(target=lambda: found.append(bench.text("search_files", pattern="needle")))
        thread.start()
        until(lambda: boottime() > over, 5, "the end of the lease")
    thread.join(10)
    assert found[0].startswith("a.txt:1: needle")


def test_a_run_that_may_happen_once_is_not_asked_again_when_its_launcher_dies(
    bench: Bench, pipe: tuple[int, int]
) -> None:
    bench.repeat = Repeat.ONCE
    old = launcher_pid()

    def kill_while_it_runs() -> bool:
        if children_of(old):
            os.kill(old, signal.SIGKILL)
        return False

    bench.cancelled = kill_while_it_runs
    with pytest.raises(ToolLost, match="outcome unknown"):
        signalling.act(bench.context(), pipe[1], "while :; do :; done")


def test_a_job_that_acts_ends_when_others_were_told_that_it_does_however_late_it_began() -> None:
    assert jobs.bounds(110.0, 100.0, acts=True) == (10.0, 10.0)
    assert jobs.bounds(110.0, 109.0, acts=True) == (1.0, 1.0)
    seconds, wall_seconds = jobs.bounds(110.0, 109.0, acts=False)
    assert wall_seconds > seconds == 1.0  # its worker is the first to end it, and says why
    assert jobs.bounds(110.0, 200.0, acts=True)[1] > 0  # a timer of nothing would be none


def test_how_a_run_ended_that_did_not_come_to_its_end() -> None:
    assert ToolResult("x").came is Came.TO_ITS_END
    assert launcher.TOO_LATE not in set(signal.valid_signals())
    assert launcher.encode_order(b"n" * 16, float("inf"))[16:] == (2**63 - 1).to_bytes(8, "big")

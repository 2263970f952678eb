"""Commands in the background: polled by offset, killed, ended with their turn, and unknown to any other worker."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator
from dataclasses import replace
from uuid import UUID, uuid4

import psutil
import pytest

from shared.boottime import boottime
from shared.errors import LeaseLost
from shared.sandbox.tiers import Tier
from shared.values import Repeat
from tests.ground import CLASSES, Ground, Rehearsal, ground
from workers import claiming, recording, toolbatch
from workers.held import Held
from workers.sandbox import background, boxed, standing, wall
from workers.sandbox.background import BACKGROUNDS, Backgrounds
from workers.sandbox.ring import MOST, Ring
from workers.tools import child, terminal, write_file
from workers.tools.context import ToolContext, ToolRefused, ToolResult, store_of

needs_a_wall = pytest.mark.wall(Tier.CONFINED)


@pytest.fixture(scope="module")
def worker(
    module_database_url: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Generator[Ground]:
    provider: Rehearsal = request.getfixturevalue("provider")
    servers = request.getfixturevalue("servers")
    home = tmp_path_factory.mktemp("home")
    with ground(module_database_url, servers.valkey.url, provider.url, home) as made:
        yield made


@pytest.fixture
def run(worker: Ground) -> Generator[ToolContext]:
    """Of a turn that this worker holds."""
    held = _held(worker)
    yield _context(worker, held)
    BACKGROUNDS.end_turn(str(held.claim.turn), 10)


def _held(worker: Ground) -> Held:
    worker.turn(worker.session(), "work")
    held = claiming.claim_next(worker.ports, CLASSES, uuid4())
    assert held is not None
    held.claim.workspace.mkdir(parents=True, exist_ok=True)
    return held


def _context(worker: Ground, held: Held) -> ToolContext:
    made = toolbatch.context(worker.ports, held, 1, 0, deadline=boottime() + 60)
    return replace(made, repeat=Repeat.ONCE)


def begin(run: ToolContext, command: str, ordinal: int = 0, **more: object) -> str:
    result = terminal.run(replace(run, ordinal=ordinal), {"command": command, "background": True, **more})
    assert result.text.startswith("begun as process "), result.text
    return result.text.split()[3].rstrip(",")


def poll_until(run: ToolContext, name: str, met: Callable[[ToolResult], bool], **more: object) -> ToolResult:
    until = time.monotonic() + 30
    while True:
        result = terminal.run(run, {"process": name, **more})
        if met(result):
            return result
        assert time.monotonic() < until, result.text
        time.sleep(0.05)


def row(worker: Ground, run: ToolContext, name: str) -> dict[str, object]:
    return worker.one("select * from backgrounds where turn = %s and name = %s", UUID(run.turn), name)


def sleepers() -> list[psutil.Process]:
    pid = child.LAUNCHER.pid()
    return [one for one in psutil.Process(pid).children(recursive=True) if one.name() == "sleep"] if pid else []


def until_no_sleeper() -> None:
    until = time.monotonic() + 15
    while sleepers():
        assert time.monotonic() < until
        time.sleep(0.02)


@needs_a_wall
def test_output_is_read_by_offset_until_it_is_over(worker: Ground, run: ToolContext) -> None:
    name = begin(run, "echo one; until [ -e go ]; do sleep 0.05; done; echo two; exit 3")
    first = poll_until(run, name, lambda result: "one" in result.text)
    assert first.text == "one\n\n[running · next offset 4]"
    (run.workspace / "go").touch()
    last = poll_until(run, name, lambda result: "[over" in result.text, offset=4)
    assert last.text.startswith("two\n\n[over: exit 3 · ")
    assert last.text.endswith("next offset 8]")
    found = row(worker, run, name)
    assert (found["status"], found["boot_id"]) == ("ended", worker.ports.life.boot_id)
    assert str(found["ending"]).startswith("exit 3")


@needs_a_wall
def test_a_kill_ends_it_with_all_that_it_started(worker: Ground, run: ToolContext) -> None:
    name = begin(run, "(setsid sleep 60 &) ; echo up; sleep 60")
    poll_until(run, name, lambda result: "up" in result.text)
    assert "[over: it was ended" in terminal.run(run, {"process": name, "kill": True}).text
    until_no_sleeper()
    assert row(worker, run, name)["status"] == "ended"


@needs_a_wall
def test_it_ends_with_its_turn(run: ToolContext) -> None:
    name = begin(run, "echo up; sleep 60")
    poll_until(run, name, lambda result: "up" in result.text)
    BACKGROUNDS.end_turn(run.turn)
    until_no_sleeper()


@needs_a_wall
def test_its_time_ends_it(run: ToolContext) -> None:
    name = begin(run, "sleep 60", timeout_s=1)
    assert "its time was over" in poll_until(run, name, lambda result: "[over" in result.text).text
    until_no_sleeper()


@needs_a_wall
def test_a_turn_has_at_most_so_many(run: ToolContext) -> None:
    for ordinal in range(4):
        begin(run, "sleep 60", ordinal)
    with pytest.raises(ToolRefused, match="end one of them first"):
        begin(run, "sleep 60", 4)
    assert terminal.run(run, {"process": "p1.2", "kill": True}).text.startswith("[over")
    begin(run, "sleep 60", 5)


@needs_a_wall
def test_what_it_made_of_files_that_steer_does_not_stand(run: ToolContext) -> None:
    name = begin(run, "echo evil > AGENTS.md")
    assert "taken back: AGENTS.md" in poll_until(run, name, lambda result: "[over" in result.text).text
    assert not (run.workspace / "AGENTS.md").exists()


def test_another_worker_says_where_it_was_and_that_nobody_knows(worker: Ground) -> None:
    held = _held(worker)
    run = _context(worker, held)
    standing.begin(store_of(run), "p1.0", 60)
    first = terminal.run(run, {"process": "p1.0"})
    assert first.is_error
    assert first.text.startswith("outcome unknown")
    assert "by a worker that does not have this turn any more" in first.text
    assert row(worker, run, "p1.0")["status"] == "unknown"
    worker.execute("update backgrounds set may_run_until = now() - interval '1 hour', fence = fence")
    assert "its time is over" in terminal.run(run, {"process": "p1.0"}).text


def test_a_process_of_another_turn_does_not_exist(worker: Ground) -> None:
    first, second = _context(worker, _held(worker)), _context(worker, _held(worker))
    standing.begin(store_of(first), "p1.0", 60)
    with pytest.raises(ToolRefused, match=r"has no process .p1\.0."):
        terminal.run(second, {"process": "p1.0"})


def test_who_lost_the_turn_begins_nothing(worker: Ground) -> None:
    run = _context(worker, _held(worker))
    worker.execute("update sessions set fence = fence + 1 where id = %s", UUID(run.session))
    with pytest.raises(LeaseLost):
        terminal.run(run, {"command": "touch was-here", "background": True})
    assert not (run.workspace / "was-here").exists()


def test_only_turns_that_are_held_here_or_by_nobody_go_on(worker: Ground) -> None:
    held = _held(worker)
    mine, boot = str(held.claim.turn), worker.ports.life.boot_id
    waiting, ended = worker.turn(worker.session(), "later"), str(uuid4())
    asked = [mine, str(waiting), ended]
    assert standing.going_on(worker.database, asked, boot) == {mine: False, str(waiting): True}
    assert standing.going_on(worker.database, asked, uuid4()) == {str(waiting): True}


@needs_a_wall
def test_a_turn_that_waits_is_claimed_where_something_of_it_runs(
    worker: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A ring may go to any worker: this one looks by itself."""
    monkeypatch.setattr(background, "_ASK_EVERY_S", 0.05)
    held = _held(worker)
    run = _context(worker, held)
    here, claims, boot = Backgrounds(), threading.Event(), worker.ports.life.boot_id
    here.calls(claims.set)
    here.watched(lambda turns: standing.going_on(worker.database, turns, boot))
    here.begin(run, wall.way(), boxed.Wanted(("/bin/sleep", "60"), 60.0), "p1.0")
    assert not claims.wait(0.5)
    recording.requeue(worker.ports, held)
    assert claims.wait(30)
    assert here.living(run.turn)
    here.end_turn(run.turn, 10)


@needs_a_wall
def test_while_something_runs_no_file_that_steers_is_written_by_hand(run: ToolContext) -> None:
    name = begin(run, "echo up; sleep 60")
    poll_until(run, name, lambda result: "up" in result.text)
    with pytest.raises(ToolRefused, match="end your background processes"):
        write_file.run(run, {"path": "AGENTS.md", "content": "x"})
    assert write_file.run(run, {"path": "a.txt", "content": "x"}).text.startswith("written")
    terminal.run(run, {"process": name, "kill": True})
    assert write_file.run(run, {"path": "AGENTS.md", "content": "x"}).text.startswith("written")


@needs_a_wall
def test_what_runs_for_a_turn_that_went_elsewhere_is_ended(run: ToolContext) -> None:
    name = begin(run, "echo up; sleep 60")
    poll_until(run, name, lambda result: "up" in result.text)
    BACKGROUNDS.keep([])
    until_no_sleeper()


def test_a_manager_that_knows_nothing_ends_nothing() -> None:
    none = Backgrounds()
    none.keep([])
    none.end_turn("t")
    assert none.turns() == []


def test_a_ring_tells_what_is_gone() -> None:
    ring = Ring()
    ring.take(b"0123456789")
    assert ring.read(4, 3) == (4, b"456")
    assert ring.read(99, 3) == (10, b"")
    ring.take(b"x" * (2 * MOST))
    begin, data = ring.read(0, 5)
    assert (begin, data) == (MOST + 10, b"xxxxx")
    assert ring.end == 2 * MOST + 10


def over(result: ToolResult) -> bool:
    return result.text.splitlines()[-1].startswith("[over: ")


@needs_a_wall
def test_of_what_is_over_the_output_is_kept_within_a_bound_of_all_turns(
    worker: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "MOST_ENDED_BYTES", 25_000)
    runs = [_context(worker, _held(worker)) for _ in range(3)]
    told: list[str] = []
    for run in runs:
        name = begin(run, "head -c 10000 /dev/zero | tr '\\0' x")
        assert "xxx" in poll_until(run, name, over).text
    for run in runs:
        told.append(terminal.run(run, {"process": "p1.0"}).text)
        BACKGROUNDS.end_turn(run.turn, 10)
    assert ["xxx" in one for one in told] == [False, True, True]
    assert told[0].startswith("[over: exit 0")
    assert "next offset 10000, bytes before 10,000 are gone" in told[0]


def test_a_turn_begins_no_more_than_so_many_one_after_another(
    run: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "MOST_BEGUN", 2)
    for ordinal in range(2):
        poll_until(run, begin(run, "true", ordinal), over)
    with pytest.raises(ToolRefused, match="has begun 2 processes"):
        begin(run, "true", 2)

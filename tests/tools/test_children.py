"""A child outlives neither its time, nor its turn, nor its worker; and can do nothing but its work."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from deploy.drill.rig import slack
from tests.tools.conftest import Bench
from workers.tools import child, confine, launcher
from workers.tools.context import ToolRefused, ToolStopped

_ROOT = str(Path(__file__).resolve().parents[2])
SLOW = "((a?b?){200}c)|((a{0,50}){0,18})*b"


def children_of(pid: int) -> list[int]:
    try:
        return [one.pid for one in psutil.Process(pid).children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def launcher_pid() -> int:
    child.LAUNCHER.start()
    pid = child.LAUNCHER.pid()
    assert pid is not None
    return pid


def wait_until_childless(pid: int) -> None:
    until = time.monotonic() + 10
    while children_of(pid):
        assert time.monotonic() < until, "a child is still there"


@pytest.fixture
def slow(bench: Bench) -> Bench:
    first = bench.workspace / "0.txt"
    first.write_bytes(b"a" * 8_000_000 + b"!")
    for number in range(1, 30):
        (bench.workspace / f"{number}.txt").hardlink_to(first)
    return bench


def test_a_cancelled_turn_frees_its_thread_at_once_and_leaves_no_child(slow: Bench) -> None:
    pid = launcher_pid()
    began = time.monotonic()
    slow.cancelled = lambda: bool(children_of(pid)) or time.monotonic() > began + 10
    assert slow.error("search_files", pattern=SLOW) == "cancelled before it had finished"
    assert time.monotonic() - began < 2 * slack()
    wait_until_childless(pid)


def test_a_run_ends_with_its_deadline(slow: Bench) -> None:
    slow.seconds = 0.3
    began = time.monotonic()
    assert "the time for this run is over" in slow.error("search_files", pattern=SLOW)
    assert time.monotonic() - began < 1.5 * slack()
    wait_until_childless(launcher_pid())


def test_a_job_that_does_not_end_is_killed_when_its_time_is_over(bench: Bench) -> None:
    with pytest.raises(ToolRefused, match="took too long"):
        _ask_for_sleep(bench, 0.2)
    wait_until_childless(launcher_pid())


def _ask_for_sleep(bench: Bench, seconds: float) -> None:
    """A render of a pipe that nobody writes to: the child waits in a read."""
    read_end, write_end = os.pipe()
    try:
        request: dict[str, object] = {
            "job": "git",
            "program": "/bin/sleep",
            "arguments": ["sleep", "60"],
            "environment": {},
        }
        (bench.workspace / ".git").mkdir(exist_ok=True)
        root = os.open(bench.workspace, os.O_RDONLY)
        child.ask(bench.context(), request, [root, write_end], seconds=seconds, most=100)
    finally:
        os.close(read_end)
        os.close(write_end)


def test_a_child_that_writes_without_end_is_stopped_at_what_is_wanted(bench: Bench) -> None:
    (bench.workspace / ".git").mkdir()
    root = os.open(bench.workspace, os.O_RDONLY)
    complaints, write_end = os.pipe()
    request: dict[str, object] = {"job": "git", "program": "/usr/bin/yes", "arguments": ["yes"], "environment": {}}
    answer = child.ask(bench.context(), request, [root, write_end], seconds=10, most=1_000_000)
    for fd in (root, complaints, write_end):
        os.close(fd)
    assert answer == child.Answer(b"y\n" * 500_000, None)
    wait_until_childless(launcher_pid())


def test_when_the_launcher_dies_the_next_job_finds_a_new_one(bench: Bench) -> None:
    (bench.workspace / "a.txt").write_text("needle")
    old = launcher_pid()
    os.kill(old, signal.SIGKILL)
    assert bench.text("search_files", pattern="needle").startswith("a.txt:1: needle")
    assert launcher_pid() != old


def test_when_the_launcher_dies_with_a_job_the_job_is_asked_again(slow: Bench) -> None:
    old = launcher_pid()
    killed = threading.Event()

    def kill_once() -> bool:
        if not killed.is_set() and children_of(old):
            killed.set()
            os.kill(old, signal.SIGKILL)
        return False

    slow.cancelled = kill_once
    assert "no match in 30 files" in slow.text("search_files", pattern="(a|b?){20}c")
    assert killed.is_set()
    assert launcher_pid() != old


def test_a_launcher_that_dies_right_after_its_fork_leaves_no_child_that_answers_for_itself(bench: Bench) -> None:
    """Such a child, told late to die with its parent, answered alone, and the end of its answer was read as its end."""
    (bench.workspace / "a.txt").write_text("needle")
    for _ in range(25):
        answered = threading.Event()

        def kill_at_the_fork(pid: int, answered: threading.Event) -> None:
            while not answered.is_set():
                if children_of(pid):
                    os.kill(pid, signal.SIGKILL)
                    return

        killer = threading.Thread(target=kill_at_the_fork, args=(launcher_pid(), answered))
        killer.start()
        text = bench.text("search_files", pattern="needle")
        answered.set()
        killer.join()
        assert text.startswith("a.txt:1: needle")


def test_jobs_of_many_threads_get_their_own_answers(bench: Bench) -> None:
    for number in range(8):
        (bench.workspace / f"{number}.txt").write_text(f"needle {number}")
    wrong: list[str] = []

    def ask(number: int) -> None:
        for _ in range(15):
            text = bench.run("search_files", pattern=f"needle {number}").text
            if not text.startswith(f"{number}.txt:1: needle {number}\n[1 matches"):
                wrong.append(text)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert wrong == []


def test_when_the_worker_is_killed_its_launcher_and_children_go_too(slow: Bench) -> None:
    script = (
        "import sys, time; from pathlib import Path; sys.path.insert(0, sys.argv[1]);"
        "from workers.tools import child, dispatch; from workers.tools.context import ToolContext;"
        "from shared.boottime import boottime;"
        "child.LAUNCHER.start(); print(child.LAUNCHER.pid(), flush=True);"
        "context = ToolContext('s', 't', 1, 0, Path(sys.argv[2]), None, lambda: False, boottime() + 60);"
        "dispatch.run_one(context, 'search_files', sys.argv[3])"
    )
    arguments = [sys.executable, "-c", script, _ROOT, str(slow.workspace), json.dumps({"pattern": SLOW})]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout is not None
        pid = int(worker.stdout.readline())
        until = time.monotonic() + 20
        while not (working := children_of(pid)):
            assert time.monotonic() < until, "the job never began"
        worker.kill()
    until = time.monotonic() + 10
    while any(Path(f"/proc/{one}").exists() and not _is_zombie(one) for one in (pid, *working)):
        assert time.monotonic() < until, "something outlived the worker"


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_a_child_has_no_environment_and_no_descriptor_of_the_worker(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NIGHTSHIFT_SECRET", "x")
    pid = launcher_pid()
    assert Path(f"/proc/{pid}/environ").read_bytes() in (b"", b"LC_CTYPE=C.UTF-8\x00")
    bench.run("search_files", pattern="x")
    targets = [str(fd.readlink()) for fd in Path(f"/proc/{pid}/fd").iterdir() if int(fd.name) > 2]
    assert sorted(target.split(":")[0] for target in targets if "/fd" not in target) == ["pipe", "pipe", "socket"]


_SEALED = """
import os, socket, subprocess, sys
sys.path.insert(0, sys.argv[1])
from workers.tools import confine
confine.limit(memory_bytes=1 << 30, cpu_seconds=5, wall_seconds=5)
held = confine.seal(folders=[os.open(sys.argv[2], os.O_RDONLY)])
def outcome(act):
    try:
        act()
        return "done"
    except OSError as error:
        return error.__class__.__name__
def connect():
    with socket.socket() as s:
        s.connect(("127.0.0.1", int(sys.argv[4])))
print(held,
    outcome(lambda: open(sys.argv[2] + "/f.txt").read()),
    outcome(lambda: open(sys.argv[2] + "/link").read()),
    outcome(lambda: open(sys.argv[3] + "/f.txt").read()),
    outcome(lambda: open(sys.argv[2] + "/new.txt", "w").write("x")),
    outcome(lambda: os.listdir("/")),
    outcome(lambda: os.execv("/bin/true", ["true"])),
    outcome(connect))
"""


def test_a_sealed_process_reads_its_folder_and_nothing_else(bench: Bench) -> None:
    (bench.workspace / "f.txt").write_text("x")
    (bench.workspace / "link").symlink_to(bench.outside / "f.txt")
    with socket.create_server(("127.0.0.1", 0)) as server:
        arguments = [_ROOT, str(bench.workspace), str(bench.outside), str(server.getsockname()[1])]
        done = subprocess.run(
            [sys.executable, "-c", _SEALED, *arguments], capture_output=True, text=True, check=True, timeout=30
        )
    denied = "PermissionError"
    if confine.landlock_version() >= 4:
        assert done.stdout.split() == ["True", "done", denied, denied, denied, denied, denied, denied]
    assert not (bench.workspace / "new.txt").exists() or confine.landlock_version() == 0


def test_memory_is_bounded(bench: Bench) -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); from workers.tools import confine;"
        "confine.limit(memory_bytes=200 << 20, cpu_seconds=5, wall_seconds=5); bytearray(400 << 20)"
    )
    done = subprocess.run([sys.executable, "-c", code, _ROOT], capture_output=True, text=True, check=False, timeout=30)
    assert "MemoryError" in done.stderr or sys.platform != "linux"


def test_a_child_that_nobody_watches_ends_by_its_own_clock_even_as_another_program() -> None:
    code = (
        "import os, sys; sys.path.insert(0, sys.argv[1]); from workers.tools import confine;"
        "confine.limit(memory_bytes=1 << 30, cpu_seconds=5, wall_seconds=0.2); os.execv('/bin/sleep', ['sleep', '60'])"
    )
    done = subprocess.run([sys.executable, "-c", code, _ROOT], check=False, timeout=30)
    assert done.returncode == -signal.SIGALRM


@pytest.mark.parametrize(("code", "byte"), [(0, 0), (-9, 9), (-24, 24), (1, 129), (128, 255), (255, 255)])
def test_how_a_child_ended_is_one_byte(code: int, byte: int) -> None:
    assert launcher.encode_end(code) == byte


def test_a_stopped_run_is_told_apart_from_a_slow_one(bench: Bench) -> None:
    bench.cancelled = lambda: True
    with pytest.raises(ToolStopped):
        child.ask(bench.context(), {"job": "search"}, [], seconds=1, most=1)

"""What dies is started again; all end, in order, when the supervisor ends, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from deploy.drill.rig import slack
from deploy.local import processes
from tests.local.conftest import ROOT, Rig, RigStarter, rig_command


def test_programs_start_wave_by_wave_and_stop_in_the_reverse_order(start_rig: RigStarter) -> None:
    rig = start_rig("first:0", "second:1", "third:2").wait_ready()
    assert rig.stop() == 0
    assert rig.events() == [
        *("start first", "start second", "start third"),
        *("stop third", "stop second", "stop first"),
    ]


def test_a_killed_program_is_started_again_within_a_second_and_the_others_stay(start_rig: RigStarter) -> None:
    rig = start_rig("api:0", "worker:0").wait_ready()
    before = rig.pids()
    os.kill(before["worker"][0], signal.SIGKILL)
    rig.new_pid("worker", before["worker"][0], 1.0)
    assert rig.pids()["api"] == before["api"]


def test_a_program_that_dies_again_and_again_is_started_ever_more_slowly(start_rig: RigStarter) -> None:
    rig = start_rig("steady:0", "weak:0:brief")
    assert processes.wait_until(lambda: rig.events().count("start weak") >= 3, 10)
    time.sleep(2.0)  # the window in which too many starts would show
    assert rig.events().count("start weak") <= 6
    assert rig.stop() == 0


def test_exit_78_stops_the_whole_stack_and_says_which_setting(start_rig: RigStarter) -> None:
    rig = start_rig("first:0", "second:1:refuses")
    said = rig.said()
    assert rig.process.returncode == 78
    assert "second cannot run as configured: NIGHTSHIFT_MODEL: not a model" in said
    assert rig.events()[-1] == "stop first"


def test_a_start_that_fails_shows_the_last_lines_and_the_mend(start_rig: RigStarter) -> None:
    rig = start_rig("first:0", "second:1:fails", "third:2")
    said = rig.said()
    assert rig.process.returncode == 1
    assert "second did not start (exit 3). The disk is full" in said
    assert "could not write: No space left on device" in said
    assert "start third" not in rig.events()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_each_stop_signal_ends_everything_cleanly(start_rig: RigStarter, number: signal.Signals) -> None:
    rig = start_rig("api:0", "worker:1").wait_ready()
    pids = [pid for role, found in rig.pids().items() if role != "supervisor" for pid in found]
    assert rig.stop(number) == 0
    assert not [pid for pid in pids if processes.is_alive(pid)]


def test_a_second_signal_ends_the_patience_with_a_program_that_will_not_stop(start_rig: RigStarter) -> None:
    rig = start_rig("first:0", "second:1:deaf").wait_ready()
    deaf = rig.pids()["second"][0]
    rig.process.send_signal(signal.SIGINT)
    time.sleep(0.2)
    assert processes.is_alive(deaf)
    started = time.monotonic()
    assert rig.stop(signal.SIGINT) == 0
    assert time.monotonic() - started < 5 * slack()
    assert not processes.is_alive(deaf)


def test_a_supervisor_killed_outright_takes_its_children_along_even_frozen_ones(start_rig: RigStarter) -> None:
    rig = start_rig("api:0", "worker:0", "deaf:0:deaf").wait_ready()
    pids = rig.pids()
    children = [pids["api"][0], pids["worker"][0], pids["deaf"][0]]
    os.kill(pids["worker"][0], signal.SIGSTOP)
    rig.process.kill()
    assert processes.wait_until(lambda: not any(processes.is_alive(pid) for pid in children), 5)


def _under_a_shell(home: Path, script: str) -> tuple[subprocess.Popen[bytes], Rig]:
    """The rig as the child of a shell that can be killed; the shell prints nothing and waits."""
    words = " ".join(f"'{word}'" for word in rig_command(home, "first:0", "second:1"))
    shell = subprocess.Popen(
        ["/bin/sh", "-c", script.replace("RIG", words)],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    ended = subprocess.Popen(["/bin/true"], text=True)
    ended.wait()
    rig = Rig(home, ended)  # for what it reads; the supervisor is the shell's child, not ours
    assert processes.wait_until(rig.is_ready, 30)
    return shell, rig


def test_when_the_parent_dies_everything_stops_in_order(folder: Path) -> None:
    shell, rig = _under_a_shell(folder / "home", "RIG & wait")
    supervisor = rig.pids()["supervisor"][0]
    shell.kill()
    shell.wait()
    assert processes.wait_until(lambda: not processes.is_alive(supervisor), 10)
    assert rig.events()[-2:] == ["stop second", "stop first"]


def test_under_nohup_the_stack_outlives_its_parent(folder: Path) -> None:
    shell, rig = _under_a_shell(folder / "home", "nohup RIG >/dev/null & wait")
    supervisor = rig.pids()["supervisor"][0]
    shell.kill()
    shell.wait()
    time.sleep(1.0)  # longer than the supervisor's look at its parent
    assert processes.is_alive(supervisor)
    assert processes.end(supervisor, ((signal.SIGTERM, 20.0), (signal.SIGKILL, 5.0)))
    assert rig.events()[-1] == "stop first"


def test_what_a_killed_program_left_behind_ends_with_it(start_rig: RigStarter) -> None:
    rig = start_rig("worker:0:parent").wait_ready()
    left = int(next(event for event in rig.events() if event.startswith("child ")).split()[1])
    old = rig.pids()["worker"][0]
    os.kill(old, signal.SIGKILL)
    rig.new_pid("worker", old, 2.0)
    assert processes.wait_until(lambda: not processes.is_alive(left), 2)


def test_a_held_program_stays_down_until_it_is_released(start_rig: RigStarter) -> None:
    rig = start_rig("api:0", "worker:0").wait_ready()
    old = rig.pids()["worker"][0]
    hold = rig.home / "hold" / "worker"
    hold.touch()
    os.kill(old, signal.SIGKILL)
    assert processes.wait_until(lambda: rig.pids()["worker"] == [], 2)
    time.sleep(1.0)  # longer than any first restart
    assert rig.pids()["worker"] == []
    hold.unlink()
    rig.new_pid("worker", old, 1.0)


def test_a_second_supervisor_in_the_same_home_is_refused_and_told_what_to_do(start_rig: RigStarter) -> None:
    rig = start_rig("first:0").wait_ready()
    second = start_rig("first:0")
    said = second.said()
    assert second.process.returncode == 1
    assert f"(pid {rig.process.pid})" in said
    assert "./dev down" in said
    assert rig.process.poll() is None


def test_killed_servers_serve_again_within_two_seconds(start_rig: RigStarter) -> None:
    rig = start_rig("postgres:0", "valkey:0").wait_ready()
    for role in ("postgres", "valkey"):
        old = rig.pids()[role][0]
        os.kill(old, signal.SIGKILL)
        rig.new_pid(role, old, 1.0)
        assert processes.wait_until(rig.is_ready, 2)
    assert rig.stop() == 0


def test_servers_of_a_killed_supervisor_make_way_for_the_next_one(start_rig: RigStarter) -> None:
    rig = start_rig("postgres:0", "valkey:0").wait_ready()
    old = rig.pids()
    os.kill(old["postgres"][0], signal.SIGSTOP)  # it cannot obey the death signal
    rig.process.kill()
    rig.process.wait()
    (rig.home / "stack.json").unlink()
    after = start_rig("postgres:0", "valkey:0").wait_ready()
    assert not processes.is_alive(old["postgres"][0])
    assert not processes.is_alive(old["valkey"][0])
    assert after.stop() == 0


def test_where_the_kernel_cannot_tie_a_child_to_its_parent_a_watcher_does(folder: Path) -> None:
    """The way of systems other than Linux, asked for by its switch."""
    launch = str(ROOT / "deploy" / "local" / "launch.py")
    script = (
        "import os, signal, subprocess, sys\n"
        "mine = ['--parent', str(os.getpid()), '--death-signal', '9', '--watched', '--']\n"
        "words = [sys.executable, sys.argv[1], *mine]\n"
        "child = subprocess.Popen([*words, sys.executable, '-c', 'import signal; signal.pause()'])\n"
        "print(child.pid, flush=True); signal.pause()"
    )
    parent = subprocess.Popen([sys.executable, "-c", script, launch], stdout=subprocess.PIPE, text=True, cwd=folder)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    assert processes.is_alive(child)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    assert processes.wait_until(lambda: not processes.is_alive(child), 5)

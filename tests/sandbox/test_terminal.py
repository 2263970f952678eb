"""Commands behind the wall: what comes back, what is ended, what does not stand."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from shared.sandbox.box import ENVIRONMENT, OWNER
from shared.sandbox.tiers import Tier
from shared.values import Repeat
from tests.tools.conftest import Bench
from workers.sandbox import boxed, wall
from workers.tools import child, run_code, terminal
from workers.tools.context import Arguments, Came, ToolLost, ToolRefused, ToolResult, ToolStopped

pytestmark = pytest.mark.wall(Tier.CONFINED)


@pytest.fixture
def box(tmp_path: Path) -> Bench:
    made = Bench(tmp_path / "workspace", tmp_path / "attached", tmp_path / "outside", repeat=Repeat.ONCE)
    for folder in (made.workspace, made.attached, made.outside):
        folder.mkdir()
    return made.alone()


def run(box: Bench, command: str, **more: object) -> ToolResult:
    given: Arguments = {"command": command, **more}
    return terminal.run(box.context(), given)


def said(box: Bench, command: str) -> str:
    result = run(box, command)
    assert not result.is_error, result.text
    return result.text.rpartition("\n[exit 0")[0]


def launched() -> list[psutil.Process]:
    pid = child.LAUNCHER.pid()
    return psutil.Process(pid).children(recursive=True) if pid is not None else []


def nothing_left() -> None:
    until = time.monotonic() + 15
    while launched():
        assert time.monotonic() < until, launched()
        time.sleep(0.02)


def test_a_command_works_in_the_workspace_and_says_how_it_ended_and_behind_which_wall(box: Bench) -> None:
    (box.workspace / "a.txt").write_text("one\n")
    result = run(box, "cat a.txt; echo two > b.txt; echo oops >&2; exit 3")
    assert result.text.startswith("one\noops\n[exit 3 · ")
    assert result.text.endswith(f"sandbox: {wall.way().tier}]")
    assert result.is_error
    assert (box.workspace / "b.txt").read_text() == "two\n"


def test_a_workspace_that_is_closed_to_others_is_its_runs_all_the_same(box: Bench) -> None:
    box.workspace.chmod(0o700)
    assert said(box, "pwd; echo x > a; cat a; grep -c . /proc/self/status > /dev/null") == "/workspace\nx"
    assert "0000000000000000" in said(box, "grep CapEff /proc/self/status")


def test_the_environment_is_the_list_and_nothing_else(box: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRILL_KEY", "of-the-worker")
    names = {line.partition("=")[0] for line in said(box, "env").splitlines()}
    assert names <= {*ENVIRONMENT, "PWD", "SHLVL", "_", "OLDPWD"}


def test_a_command_that_takes_too_long_is_ended_with_all_that_it_started_and_its_output_is_kept(box: Bench) -> None:
    sleepers = "trap '' TERM INT HUP; (setsid sh -c 'trap \"\" TERM; sleep 60' &) ; echo begun; sleep 60"
    result = run(box, sleepers, timeout_s=1)
    assert result.text.startswith("begun\n[ended: it took longer than 1 s")
    nothing_left()


def test_what_a_command_leaves_running_ends_with_it(box: Bench) -> None:
    assert said(box, "(setsid nohup sleep 60 > /dev/null 2>&1 &); echo done") == "done"
    nothing_left()


def test_a_cancelled_command_ends_at_once_and_leaves_nothing(box: Bench) -> None:
    box.cancelled = lambda: any(one.name() == "sleep" for one in launched())
    with pytest.raises(ToolStopped, match="cancelled"):
        run(box, "sleep 60")
    nothing_left()


def test_endless_output_is_ended_and_its_beginning_and_end_are_shown(
    box: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(boxed, "MOST_OUTPUT", 3_000_000)
    result = run(box, "echo first; yes")
    assert result.text.startswith("first\ny\n")
    assert "bytes left out here" in result.text
    assert "more than" in result.text.rpartition("[")[2]
    assert len(result.text) < terminal.TOOL.cap_chars
    nothing_left()


def test_ten_gigabytes_of_zeros_are_named_and_not_shown(box: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boxed, "MOST_OUTPUT", 3_000_000)
    result = run(box, "head -c 10G /dev/zero")
    assert "bytes that are no text]" in result.text
    assert "\x00" not in result.text


def test_escapes_of_a_terminal_are_taken_out(box: Bench) -> None:
    command = r"""printf '\033[31mred\033[0m \033]0;title\007plain\033[2J 10%%\r100%%\n'"""
    assert said(box, command) == "100%"
    assert said(box, r"printf '\033[31mred\033[0m \033]52;c;ZXZpbA==\007plain\n'") == "red plain"


def test_a_fork_bomb_and_a_memory_bomb_end(box: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    forks = run(box, "f() { f | f & }; f 2> /dev/null; sleep 1; echo still here", timeout_s=20)
    assert "still here" in forks.text or "ended" in forks.text
    monkeypatch.setattr(terminal, "_wanted", _little)
    assert "more memory than a run may have" in run(box, "tail /dev/zero", timeout_s=60).text
    nothing_left()


def _little(command: str, seconds: float) -> boxed.Wanted:
    return boxed.Wanted(("/bin/bash", "-c", command), seconds, bounds=boxed.Bounds(memory_bytes=64 << 20))


def test_a_file_that_grows_without_end_stops_at_the_bound(box: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def little(command: str, seconds: float) -> boxed.Wanted:
        return boxed.Wanted(("/bin/bash", "-c", command), seconds, bounds=boxed.Bounds(file_bytes=1 << 20))

    monkeypatch.setattr(terminal, "_wanted", little)
    assert "exit" in run(box, "head -c 5M /dev/zero > big").text
    assert (box.workspace / "big").stat().st_size == 1 << 20


FILLS = {
    "many files": "for n in $(seq 200); do head -c 1M /dev/zero > f$n; sleep 0.02; done; sleep 20",
    "deep below": "mkdir -p a/b/c; for n in $(seq 200); do head -c 1M /dev/zero >> a/b/c/f; sleep 0.02; done; sleep 20",
    "without a name": "exec 5> f; rm f; for n in $(seq 200); do head -c 1M /dev/zero >&5; sleep 0.02; done; sleep 20",
}


@pytest.mark.parametrize("how", list(FILLS))
def test_a_workspace_that_fills_ends_the_run(box: Bench, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    """No single file is too large."""

    def little(command: str, seconds: float) -> boxed.Wanted:
        return boxed.Wanted(("/bin/bash", "-c", command), seconds, bounds=boxed.Bounds(disk_bytes=0))

    monkeypatch.setattr(terminal, "_wanted", little)
    result = run(box, FILLS[how], timeout_s=60)
    assert result.is_error
    assert "the workspace came to hold more than it may" in result.text
    nothing_left()
    assert "exit 0" in run(box, "rm -rf a f*; head -c 9M /dev/zero > kept").text


@pytest.mark.parametrize("name", ["AGENTS.md", "sub/CLAUDE.md", ".git/hooks/pre-commit"])
@pytest.mark.parametrize(
    "road",
    [
        "echo evil > F", "echo evil >> F", "rm -f F; echo evil > F", "echo evil > x; mv -f x F", "ln -sf /etc/passwd F",
        "ln -f F second; echo evil > second", "D=$(dirname F); mv $D $D.gone 2>/dev/null; mkdir -p $D; echo evil > F",
        "python3 -c 'open(\"F\", \"w\").write(\"evil\")'", "sed -i s/good/evil/ F", "chmod 777 F; echo evil > F",
    ],
    ids=["redirect", "append", "anew", "rename", "link", "hard-link", "folder-away", "python", "sed", "chmod"],
)  # fmt: skip
def test_a_file_that_steers_stands_as_it_was_by_whatever_road(box: Bench, name: str, road: str) -> None:
    file = box.workspace / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("good\n")
    run(box, road.replace("F", name))
    assert not file.is_symlink()
    assert file.read_text() == "good\n"


@pytest.mark.parametrize(
    ("road", "name"),
    [
        ("echo evil > AGENTS.md", "AGENTS.md"), ("echo evil > agents.MD", "agents.MD"),
        ("mkdir -p a/b; echo evil > a/b/CLAUDE.md", "a/b/CLAUDE.md"), ("ln -s other AGENTS.md", "AGENTS.md"),
        ("mkdir -p x/hooks; echo evil > x/hooks/pre-commit; mv x .git", ".git/hooks/pre-commit"),
        ("echo evil > x; ln x AGENTS.md", "AGENTS.md"),
    ],
    ids=["new", "folded", "deep", "link", "folder", "hard-link"],
)  # fmt: skip
def test_a_new_file_that_steers_does_not_stand_and_the_model_is_told(box: Bench, road: str, name: str) -> None:
    result = run(box, road)
    assert f"taken back: {name}" in result.text
    assert result.is_error
    assert not os.path.lexists(box.workspace / name)


def test_a_second_name_of_a_file_that_steers_is_no_road_to_it(box: Bench) -> None:
    (box.workspace / "AGENTS.md").write_text("good\n")
    os.link(box.workspace / "AGENTS.md", box.workspace / "alias")
    if os.geteuid() == 0:
        os.chown(box.workspace / "alias", OWNER, OWNER)
    assert "taken back: AGENTS.md" in run(box, "echo evil > alias").text
    assert (box.workspace / "AGENTS.md").read_text() == "good\n"


def test_a_folder_with_files_that_steer_may_be_renamed(box: Bench) -> None:
    (box.workspace / "sub").mkdir()
    (box.workspace / "sub/AGENTS.md").write_text("good\n")
    result = run(box, "mv sub other")
    assert not result.is_error, result.text
    assert (box.workspace / "other/AGENTS.md").read_text() == "good\n"


def test_what_children_work_on_is_not_written_and_a_stack_is_not_read(box: Bench) -> None:
    box.with_attached = True
    for top in (box.workspace, box.attached):
        (top / "project/.nightshift").mkdir(parents=True)
        (top / "project/.nightshift/key").write_text("secret-of-the-stack")
    (box.workspace / "children/c").mkdir(parents=True)
    text = run(
        box, "cat project/.nightshift/* input/project/.nightshift/*; echo x > children/c/x; echo y > input/y"
    ).text
    assert "secret-of-the-stack" not in text
    assert not (box.workspace / "children/c/x").exists()
    assert not (box.attached / "y").exists()


def test_names_that_no_program_expects_are_no_obstacle(box: Bench) -> None:
    deep = "d/" * 300
    (box.workspace / "sparse").touch()
    os.truncate(box.workspace / "sparse", 1 << 40)
    command = f"mkdir -p {deep}; mkfifo pipe; touch $'new\\nline' $'\\xff\\xfe'; ln -s loop loop; echo made"
    assert said(box, command) == "made"
    assert said(box, "ls -U --zero | tr -dc '\\0' | wc -c").strip() == "6"


def test_where_the_attached_folder_cannot_be_mounted_nothing_is_run(box: Bench) -> None:
    (box.workspace / "input").write_text("a file where a folder is to be")
    box.with_attached = True
    with pytest.raises(ToolRefused, match="taken by something"):
        run(box, "true")


@pytest.mark.parametrize("arguments", [{}, {"command": " "}, {"command": "ls", "process": "p1.0"}])
def test_a_call_says_either_what_to_run_or_what_to_ask_for(box: Bench, arguments: dict[str, object]) -> None:
    with pytest.raises(ToolRefused, match="not both"):
        terminal.run(box.context(), arguments)


def test_a_command_with_a_nul_or_without_end_is_refused(box: Bench) -> None:
    for command in ("echo \x00", "x" * 70_000):
        with pytest.raises(ToolRefused, match="at most"):
            run(box, command)


def test_when_the_launcher_is_killed_the_outcome_is_unknown_and_nothing_lives_on(box: Bench) -> None:
    def kill() -> None:
        until = time.monotonic() + 30
        while time.monotonic() < until and not any(one.name() == "sleep" for one in launched()):
            time.sleep(0.02)
        found.extend(launched())
        pid = child.LAUNCHER.pid()
        assert pid is not None
        os.kill(pid, signal.SIGKILL)

    found: list[psutil.Process] = []
    thread = threading.Thread(target=kill)
    thread.start()
    result = box_result(box, "sleep 60")
    thread.join()
    assert result.came is Came.LOST
    assert "outcome unknown" in result.text
    psutil.wait_procs(found, timeout=10)
    assert not [one for one in found if one.is_running()]


def box_result(box: Bench, command: str) -> ToolResult:
    try:
        return run(box, command)
    except ToolLost as lost:
        return ToolResult(lost.message, is_error=True, came=Came.LOST)


def test_code_prints_and_its_faults_are_shown_as_an_interpreter_would(box: Bench) -> None:
    result = run_code.run(box.context(), {"code": "print(40 + 2)\nraise ValueError('x')"})
    assert result.text.startswith("42\nTraceback")
    assert "ValueError: x" in result.text
    assert "[exit 1" in result.text


def test_a_folder_of_which_everything_steers_takes_nothing_new(box: Bench) -> None:
    (box.workspace / "skills/deploy").mkdir(parents=True)
    (box.workspace / "skills/deploy/SKILL.md").write_text("good\n")
    result = run(box, "echo evil > skills/deploy/run.sh; mkdir skills/other; rm -rf skills; ls skills")
    assert "Read-only file system" in result.text
    assert [path.name for path in (box.workspace / "skills").rglob("*")] == ["deploy", "SKILL.md"]


def test_git_works_though_its_configuration_does_not_stand(box: Bench) -> None:
    assert "taken back: .git/config" in run(box, "git init -q . && git config core.pager evil").text
    assert said(box, "echo a > a && git add a && git commit -qm first && git log --format=%s") == "first"


@pytest.mark.parametrize(
    "road", ["mkdir -p sub/.NightShift; echo x > sub/.NightShift/a", "echo x > sub/admin-token.secret"]
)
def test_nothing_is_hidden_in_what_looks_like_the_state_of_a_service(box: Bench, road: str) -> None:
    (box.workspace / "sub").mkdir()
    (box.workspace / "sub/mine.txt").write_text("mine")
    result = run(box, f"{road}; echo evil > sub/AGENTS.md")
    assert "taken back: sub/" in result.text
    assert [path.name for path in (box.workspace / "sub").iterdir()] == ["mine.txt"]


def test_long_code_in_any_script_arrives_whole(box: Bench) -> None:
    text = "ж" * 99_000
    result = run_code.run(box.context(), {"code": f"print(len('{text}'))"})
    assert result.text.startswith("99000\n[exit 0")


def test_what_is_no_request_on_the_socket_of_the_tools_ends_them_and_not_the_code(box: Bench) -> None:
    code = (
        "import gc\n"
        "channel = next(o for o in gc.get_objects() if type(o).__name__ == 'Channel')._socket\n"
        "channel.sendall(b'\\xff' * 100)\n"
        "print('still here', channel.recv(10))"
    )
    assert run_code.run(box.context(), {"code": code}).text.startswith("still here")


def test_when_a_worker_is_killed_what_it_ran_dies_with_it(box: Bench) -> None:
    """And the launcher, which nobody tells of it but the end of its socket."""
    name = f"left-{os.getpid()}"
    program = box.workspace / "program.py"
    program.write_text(f"import os; print('up', flush=True); os.execv('/bin/sleep', ['{name}', '60'])")
    command = [sys.executable, str(Path(__file__).with_name("within.py")), "best", str(program), "{}"]
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    worker = subprocess.Popen([*command, str(box.workspace), ""], env=env, stdout=subprocess.DEVNULL)
    until = time.monotonic() + 60
    while not named(name):
        assert time.monotonic() < until
        assert worker.poll() is None
        time.sleep(0.05)
    worker.kill()
    worker.wait()
    while named(name):
        assert time.monotonic() < until
        time.sleep(0.05)


def named(name: str) -> list[psutil.Process]:
    return [one for one in psutil.process_iter(["cmdline"]) if (one.info["cmdline"] or [""])[0] == name]

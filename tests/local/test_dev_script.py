"""`./dev` before Python: each way in which a machine is not ready ends in one sentence with the mend."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.local.conftest import ROOT

DEV = ROOT / "dev"
NEEDED = ("cat", "cksum", "cut", "date", "dirname", "find", "grep", "head", "mkdir", "readlink", "rm", "sleep", "tail")


@pytest.fixture
def tools(folder: Path) -> Path:
    """A PATH that holds what a POSIX system has, and no Python."""
    path = folder / "bin"
    path.mkdir()
    for name in NEEDED:
        found = shutil.which(name)
        assert found is not None
        (path / name).symlink_to(found)
    return path


def stand_in(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def dev(tools: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    home = {"HOME": str(tools.parent), "NIGHTSHIFT_VENV": str(tools.parent / "venv")}
    return subprocess.run(
        ["/bin/sh", str(DEV), *words],
        env={"PATH": str(tools), **home, **more}, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def test_without_a_python_it_says_what_to_install(tools: Path) -> None:
    done = dev(tools, "up")
    assert done.returncode == 1
    assert "Python 3.11 or later is needed, and there is none on the PATH" in done.stderr
    assert "apt install python3 python3-venv" in done.stderr


def test_with_a_python_that_is_too_old_it_names_it(tools: Path) -> None:
    stand_in(tools / "python3", 'case "$2" in *print*) echo 3.9 ;; *) exit 1 ;; esac')
    done = dev(tools, "up")
    assert done.returncode == 1
    assert "Python 3.11 or later is needed, and python3 is 3.9" in done.stderr


def test_with_a_python_that_can_make_no_environment_it_names_the_package(tools: Path) -> None:
    stand_in(tools / "python3", 'case "$2" in *venv*) exit 1 ;; *print*) echo 3.12 ;; esac')
    done = dev(tools, "up")
    assert done.returncode == 1
    assert "apt install python3-venv" in done.stderr


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ("OSError: [Errno 28] No space left on device", "The disk is full"),
        ("Temporary failure in name resolution", "The package registry cannot be reached"),
        ("THESE PACKAGES DO NOT MATCH THE HASHES", "A package is not the one that the lock names"),
        ("Permission denied: 'x'", "cannot be written"),
    ],
)
def test_a_failed_installation_is_explained(tools: Path, said: str, sentence: str) -> None:
    stand_in(tools / "python3", f'case "$*" in *"-m venv"*) echo "{said}"; exit 1 ;; *print*) echo 3.12 ;; esac')
    done = dev(tools, "up")
    assert done.returncode == 1
    assert sentence in done.stderr.splitlines()[-1]


def test_a_folder_that_is_no_environment_is_never_emptied(tools: Path) -> None:
    kept = tools.parent / "venv" / "thesis.txt"
    kept.parent.mkdir()
    kept.write_text("years of work")
    done = dev(tools, "up")
    assert done.returncode == 1
    assert "is there and is no virtual environment" in done.stderr
    assert kept.read_text() == "years of work"


def test_an_environment_that_cannot_be_made_names_the_setting(tools: Path) -> None:
    (tools.parent / "file").write_text("")
    done = dev(tools, "up", NIGHTSHIFT_VENV=str(tools.parent / "file" / "venv"))
    assert done.returncode == 1
    assert "set NIGHTSHIFT_VENV to a folder that can be written" in done.stderr


def test_the_lock_of_a_set_up_that_died_is_taken_over(tools: Path) -> None:
    claim = tools.parent / "venv" / ".setup-lock"
    claim.mkdir(parents=True)
    ended = subprocess.Popen(["/bin/true"])
    ended.wait()
    (claim / "pid").write_text(f"{ended.pid}\n")
    done = dev(tools, "up")
    assert "there is none on the PATH" in done.stderr
    assert not claim.exists()


def test_an_unknown_command_is_wrong_use_and_help_is_not(tools: Path) -> None:
    assert dev(tools, "dance").returncode == 2
    shown = dev(tools)
    assert shown.returncode == 0
    for command in ("demo", "up", "test", "check", "bench", "down", "logs", "psql", "migrate", "nightshift"):
        assert command in shown.stdout


def test_it_is_executable_and_plain_sh(tools: Path) -> None:
    assert os.access(DEV, os.X_OK)
    assert subprocess.run(["/bin/sh", "-n", str(DEV)], timeout=20, check=False).returncode == 0
    assert dev(tools, "help").stderr == ""

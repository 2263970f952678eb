"""History is read, and nothing that a repository says is done."""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path

import pytest

from tests.tools.conftest import Bench
from workers.tools import confine, git_command, git_log

_DAY = "2026-11-30T0{}:00:00+01:00"
_ENV = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "A | B",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "C",
    "GIT_COMMITTER_EMAIL": "c@example.org",
}


def git(folder: Path, *words: str, given: bytes | None = None, at: int = 1, check: bool = True) -> str:
    date = _DAY.format(at)
    environment = {**_ENV, "GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
    done = subprocess.run(
        ["git", *words], cwd=folder, env=environment, input=given, capture_output=True, check=check, timeout=30
    )
    return done.stdout.decode()


def repository(folder: Path) -> Path:
    git(folder, "init", "-q", "-b", "main")
    for number, (path, subject) in enumerate((("a.txt", "First"), ("docs/b.txt", "Second: *näive*")), 1):
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text("one\ntwo\n" * number)
        git(folder, "add", path)
        git(folder, "commit", "-q", "-m", subject + "\n\nbody", at=number)
    return folder


def test_the_history_is_a_line_a_commit_newest_first(bench: Bench) -> None:
    repository(bench.attached)
    first, second = git(bench.attached, "log", "--format=%h", "--abbrev=10").split()
    assert bench.text("git_log") == (
        f"{first} 2026-11-30T02:00:00+01:00 A / B | Second: *näive*\n{second} 2026-11-30T01:00:00+01:00 A / B | First"
    )
    assert bench.text("git_log", path="input/docs", stat=True) == (
        f"{first} 2026-11-30T02:00:00+01:00 A / B | Second: *näive*\n    +4 -0 docs/b.txt"
    )
    assert bench.text("git_log", limit=1).splitlines()[1] == (
        "[1 commits shown, more exist; raise limit, or narrow path or since]"
    )
    assert bench.text("git_log", since="2026-11-30T01:30:00+01:00").count("\n") == 0
    assert bench.text("git_log", path="input/nothing") == "[no commits there]"


def test_a_path_is_a_path_and_no_pattern_and_no_option(bench: Bench) -> None:
    repository(bench.attached)
    for path in ("input/*", "input/:(top)docs", "input/--all", "input/:!docs", "input/d*s"):
        assert bench.text("git_log", path=path) == "[no commits there]"
    assert "since must be a date" in bench.error("git_log", since="$(touch x)")
    assert bench.text("git_log", since="--all")


def test_without_a_repository_it_says_so_and_does_not_climb(bench: Bench) -> None:
    repository(bench.workspace.parent)
    assert bench.error("git_log") == "the workspace is not a git repository"
    assert bench.error("git_log", path="input") == "input/ is not a git repository"
    git(bench.workspace, "init", "-q")
    assert bench.error("git_log") == "the repository in the workspace has no commits yet"


def test_a_repository_that_lies_elsewhere_is_not_read(bench: Bench) -> None:
    repository(bench.outside)
    (bench.workspace / ".git").write_text(f"gitdir: {bench.outside}/.git\n")
    assert "has a .git that is a file" in bench.error("git_log")
    (bench.workspace / ".git").unlink()
    (bench.workspace / ".git").symlink_to(bench.outside / ".git")
    assert "has a .git that is a file or holds links" in bench.error("git_log")
    (bench.workspace / ".git").unlink()
    (bench.workspace / ".git").mkdir()
    (bench.workspace / ".git/HEAD").write_text("ref: refs/heads/main\n")
    (bench.workspace / ".git/commondir").write_text(f"{bench.outside}/.git\n")
    assert "borrows from another folder" in bench.error("git_log")
    (bench.workspace / ".git/commondir").unlink()
    (bench.workspace / ".git/objects").symlink_to(bench.outside / ".git/objects")
    (bench.workspace / ".git/refs").symlink_to(bench.outside / ".git/refs")
    assert "holds links" in bench.error("git_log")


def test_a_repository_that_borrows_objects_is_not_read(bench: Bench) -> None:
    repository(bench.outside)
    git(bench.workspace, "clone", "-q", "--shared", str(bench.outside), ".")
    assert bench.error("git_log") == "the repository in the workspace borrows from another folder and is not read"


def test_an_ordinary_repository_that_is_swapped_for_a_borrowing_one_shows_nothing_of_the_other(bench: Bench) -> None:
    """The look comes before git starts; only the kernel's walls hold after it."""
    repository(bench.outside)
    git(bench.outside, "commit", "-q", "--allow-empty", "-m", "the-secret-subject")
    repository(bench.workspace)
    alternates = bench.workspace / ".git/objects/info/alternates"
    head = bench.workspace / ".git/refs/heads/main"
    own, other = head.read_text(), git(bench.outside, "rev-parse", "HEAD")
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            alternates.write_text(f"{bench.outside}/.git/objects\n")
            head.write_text(other)
            head.write_text(own)
            alternates.unlink()
            stop.wait(0.01)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        seen = {bench.run("git_log").text for _ in range(80)}
    finally:
        stop.set()
        thread.join(10)
    if confine.landlock_version():
        assert not any("the-secret-subject" in text for text in seen)
    assert any("| First" in text for text in seen)


SETTINGS = {
    "core.fsmonitor": "{canary}",
    "core.hooksPath": "{hooks}",
    "core.pager": "{canary}",
    "core.sshCommand": "{canary}",
    "core.askPass": "{canary}",
    "core.editor": "{canary}",
    "core.gitProxy": "{canary}",
    "core.alternateRefsCommand": "{canary}",
    "core.attributesFile": "{attributes}",
    "pager.log": "{canary}",
    "log.showSignature": "true",
    "gpg.program": "{canary}",
    "gpg.openpgp.program": "{canary}",
    "gpg.ssh.program": "{canary}",
    "gpg.x509.program": "{canary}",
    "diff.external": "{canary}",
    "diff.evil.command": "{canary}",
    "diff.evil.textconv": "{canary}",
    "diff.evil.cachetextconv": "true",
    "filter.evil.clean": "{canary}",
    "filter.evil.smudge": "{canary}",
    "filter.evil.process": "{canary}",
    "filter.evil.required": "true",
    "merge.evil.driver": "{canary}",
    "credential.helper": "!{canary}",
    "alias.log": "!{canary}",
    "protocol.ext.allow": "always",
    "protocol.allow": "always",
    "core.repositoryFormatVersion": "1",  # else no extension counts
    "extensions.partialClone": "origin",
    "remote.origin.promisor": "true",
    "remote.origin.url": "ext::{canary} %S",
    "remote.origin.uploadpack": "{canary}",
    "uploadpack.packObjectsHook": "{canary}",
    "trailer.x.command": "{canary}",
    "interactive.diffFilter": "{canary}",
    "sequence.editor": "{canary}",
    "mailmap.file": "/etc/passwd",
    "diff.orderFile": "/etc/passwd",
    "diff.submodule": "log",
    "status.submoduleSummary": "true",
    "log.diffMerges": "on",
}


@pytest.fixture
def armed(bench: Bench) -> Path:
    """A repository in which every setting that can name a program names one that touches a canary; returns its path."""
    folder = repository(bench.attached)
    canary, touched = bench.outside / "canary.sh", bench.outside / "touched"
    canary.write_text(f"#!/bin/sh\ntouch {touched}\ncat\n")
    canary.chmod(0o755)
    hooks = bench.outside / "hooks"
    hooks.mkdir()
    for hook in ("post-checkout", "reference-transaction", "post-index-change", "pre-auto-gc"):
        (hooks / hook).symlink_to(canary)
        (folder / ".git/hooks").mkdir(exist_ok=True)
        (folder / ".git/hooks" / hook).symlink_to(canary)
    attributes = bench.outside / "attributes"
    attributes.write_text("* diff=evil filter=evil merge=evil\n")
    (folder / ".gitattributes").write_text("* diff=evil filter=evil merge=evil\n")
    (folder / ".git/info").mkdir(exist_ok=True)
    (folder / ".git/info/attributes").write_text("* diff=evil filter=evil merge=evil\n")
    signed = git(folder, "cat-file", "commit", "HEAD").replace(
        "\n\n", "\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n eHg=\n -----END PGP SIGNATURE-----\n\n", 1
    )
    commit = git(folder, "hash-object", "-t", "commit", "-w", "--stdin", given=signed.encode()).strip()
    git(folder, "update-ref", "HEAD", commit)
    values = {"canary": str(canary), "hooks": str(hooks), "attributes": str(attributes)}
    for key, value in SETTINGS.items():
        git(folder, "config", key, value.format(**values))
    touched.unlink(missing_ok=True)
    return touched


def test_the_canary_sings_when_git_is_run_carelessly(bench: Bench, armed: Path) -> None:
    """If this fails, the tests below prove nothing."""
    git(bench.attached, "log", "-n1", check=False)
    assert armed.exists(), "log.showSignature"
    armed.unlink()
    (bench.attached / "a.txt").write_text("changed")
    git(bench.attached, "status", check=False)
    assert armed.exists(), "core.fsmonitor"
    armed.unlink()
    git(bench.attached, "-c", "core.fsmonitor=false", "log", "-p", "--textconv", "--no-show-signature", check=False)
    assert armed.exists(), "diff.evil.textconv"


def test_nothing_that_a_repository_names_is_run(bench: Bench, armed: Path) -> None:
    (bench.attached / "a.txt").write_text("changed")
    for arguments in ({}, {"stat": True}, {"path": "input/a.txt", "stat": True}, {"since": "2026-01-01"}):
        assert "| First" in bench.text("git_log", **arguments) or arguments.get("path") is None
    assert "Second" in bench.text("git_log", stat=True)
    assert not armed.exists()


def test_a_missing_object_is_not_fetched(bench: Bench, armed: Path) -> None:
    blob = git(bench.attached, "-c", "core.fsmonitor=false", "rev-parse", "HEAD:docs/b.txt").strip()
    (bench.attached / ".git/objects" / blob[:2] / blob[2:]).unlink()
    armed.unlink(missing_ok=True)
    result = bench.run("git_log", stat=True)
    assert "First" in result.text or result.is_error
    assert not armed.exists()


@pytest.mark.parametrize("missing", [False, True])
def test_even_without_the_kernel_our_settings_let_git_run_nothing(bench: Bench, armed: Path, missing: bool) -> None:
    blob = git(bench.attached, "-c", "core.fsmonitor=false", "rev-parse", "HEAD:docs/b.txt").strip()
    if missing:
        (bench.attached / ".git/objects" / blob[:2] / blob[2:]).unlink()
    (bench.attached / "a.txt").write_text("changed")
    armed.unlink(missing_ok=True)
    command = git_command.log_arguments(form=git_log._FORM, most=9, since="2026-01-01", numbers=True, parts=())
    done = subprocess.run(
        command, cwd=bench.attached, env=dict(git_command.ENVIRONMENT), capture_output=True, check=False, timeout=30
    )
    assert missing or b"First" in done.stdout
    assert not armed.exists()


def test_even_without_our_settings_the_kernel_lets_git_run_nothing(
    bench: Bench, armed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def careless(**_: object) -> list[str]:
        return ["git", "--git-dir=.git", "--work-tree=.", "log", f"--format={git_log._FORM}", "-p", "--textconv"]

    monkeypatch.setattr(git_command, "log_arguments", careless)
    bench.run("git_log")
    assert armed.exists() == (confine.landlock_version() == 0)


@pytest.mark.parametrize("setting", ["include.path", "includeIf.gitdir:/.path"])
def test_a_configuration_that_includes_a_file_outside_shows_nothing_of_it(bench: Bench, setting: str) -> None:
    repository(bench.attached)
    (bench.outside / "config").write_text("[format]\n\tpretty = the-secret-outside\n")
    git(bench.attached, "config", setting, str(bench.outside / "config"))
    assert "the-secret-outside" not in bench.run("git_log").text


def test_the_work_tree_of_a_configuration_is_not_followed(bench: Bench) -> None:
    repository(bench.attached)
    git(bench.attached, "config", "core.worktree", str(bench.outside))
    assert "| First" in bench.text("git_log", stat=True)


def test_subjects_and_names_are_one_line_and_the_result_is_capped(bench: Bench) -> None:
    repository(bench.attached)
    message = b"\x1b[31mred\x07 \xe2\x80\xaeover\x01 " + b"x" * 1_000
    git(bench.attached, "commit", "-q", "--allow-empty", "-F", "-", given=message, at=3)
    for _ in range(150):
        git(bench.attached, "commit", "-q", "--allow-empty", "-m", "y" * 400, at=4)
    text = bench.text("git_log", limit=500)
    assert len(text) <= 40_000
    assert "more exist" in text.splitlines()[-1]
    line = next(line for line in bench.text("git_log", limit=500, since="2026-11-30T02:30:00+01:00").splitlines())
    assert line.endswith("y" * 300)
    old = bench.text("git_log", path="input/a.txt")
    assert old.endswith("| First")


def test_control_characters_of_a_subject_do_not_reach_the_result(bench: Bench) -> None:
    repository(bench.attached)
    git(
        bench.attached,
        "commit",
        "-q",
        "--allow-empty",
        "-F",
        "-",
        given=b"\x1b[31mred \xe2\x80\xaeover\x1e|\x1fx\ry",
        at=3,
    )
    assert bench.text("git_log", limit=1).splitlines()[0].endswith("A / B | [31mred over | x y")

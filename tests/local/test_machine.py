"""What a machine can do to the stack: a full disk, a folder that cannot be written, another user, foreign variables."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.commands.checkout import without_keys
from deploy.local import home as home_module
from deploy.local.explain import StackError, cause, os_error
from deploy.local.home import open_home, secret
from deploy.local.logs import LogFile, readable
from deploy.local.spawn import clean_environment
from tests.local.conftest import ROOT

_ON_A_FULL_DISK = """
import subprocess, sys
from pathlib import Path
from deploy.local import home
from deploy.local.servers import ephemeral
if sys.argv[2] == "mount":
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", sys.argv[1]], check=True)
    home.LEAST_FREE_BYTES = int(sys.argv[3])
try:
    ephemeral(Path(sys.argv[1]) / "home").__enter__()
except Exception as error:
    print(f"{type(error).__name__}: {error}")
"""
_PRIVATE_MOUNTS = ["unshare", "--user", "--map-root-user", "--mount"]


def _python(*words: str, before: tuple[str, ...] = ()) -> str:
    done = subprocess.run(
        [*before, sys.executable, "-c", *words],
        capture_output=True, text=True, timeout=60, check=False, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    return done.stdout + done.stderr


@pytest.mark.parametrize("least_free", [0, 150 * 2**20], ids=["initdb-finds-out", "told-before"])
def test_a_full_disk_is_told_in_a_sentence_with_the_mend(folder: Path, least_free: int) -> None:
    """In a mount namespace of its own; where those are closed, the disk is only said to be small."""
    may_mount = subprocess.run([*_PRIVATE_MOUNTS, "true"], capture_output=True, timeout=20, check=False).returncode == 0
    if may_mount:
        said = _python(_ON_A_FULL_DISK, str(folder), "mount", str(least_free), before=tuple(_PRIVATE_MOUNTS))
    else:
        said = f"StackError: {os_error(OSError(errno.ENOSPC, ''), 'writing', folder)}"
    assert said.startswith("StackError: "), said
    assert "The disk is full" in said
    assert "point NIGHTSHIFT_HOME at a folder on another disk" in said
    assert len(said.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("number", "sentence"),
    [
        (errno.ENOSPC, "The disk is full"),
        (errno.EROFS, "is on a read-only file system"),
        (errno.EACCES, "This user may not write"),
        (errno.ENOTDIR, "is not a folder"),
        (errno.EIO, "Failed while writing"),
    ],
)
def test_a_failed_write_names_the_path_and_the_setting_that_helps(number: int, sentence: str) -> None:
    said = str(os_error(OSError(number, os.strerror(number)), "writing", Path("/some/where")))
    assert sentence in said
    assert "/some/where" in said
    assert "NIGHTSHIFT_HOME" in said


def test_a_home_below_a_file_is_refused_in_a_sentence(folder: Path) -> None:
    (folder / "file").write_text("not a folder")
    with pytest.raises(StackError, match=r"file/home is not a folder: .* NIGHTSHIFT_HOME"):
        open_home(folder / "file" / "home")


def test_a_socket_folder_that_someone_else_made_first_is_refused(folder: Path) -> None:
    deep = folder / ("x" * 120)
    home = open_home(deep)
    home.sockets.rmdir()
    home.sockets.symlink_to(folder)
    try:
        with pytest.raises(StackError, match="belongs to someone else"):
            open_home(deep)
    finally:
        home.sockets.unlink()


def test_a_home_is_private_and_its_secrets_stay_the_same(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(home_module, "LEAST_FREE_BYTES", 0)
    home = open_home(folder / "home")
    assert home.root.stat().st_mode & 0o777 == 0o700
    first = secret(home, "token")
    assert secret(open_home(folder / "home"), "token") == first
    assert (home.root / "token.secret").stat().st_mode & 0o777 == 0o600


def test_the_first_known_sign_tells_the_cause() -> None:
    lines = ["starting", "PANIC:  could not write to file: No space left on device", "Permission denied"]
    assert (cause(lines) or "").startswith("The disk is full")
    assert cause(["all is well"]) is None


def test_a_child_sees_no_key_and_no_setting_and_asks_no_proxy_for_this_machine() -> None:
    seen = clean_environment(
        {
            "PATH": "/bin",
            "ANTHROPIC_API_KEY": "k",
            "NIGHTSHIFT_TOKEN": "t",
            "PYTHONPATH": "/x",
            "PGHOST": "h",
            "HTTPS_PROXY": "http://proxy:3128",
            "NO_PROXY": "intern",
        }
    )
    assert seen == {
        "PATH": "/bin",
        "HTTPS_PROXY": "http://proxy:3128",
        "NO_PROXY": "intern,127.0.0.1,localhost",
        "no_proxy": "intern,127.0.0.1,localhost",
    }


def test_tests_and_benchmarks_never_see_a_providers_key() -> None:
    keys = {"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "u", "AWS_SECRET_ACCESS_KEY": "k"}
    ours = {
        "NIGHTSHIFT_PROVIDER_KEY": "k",
        "NIGHTSHIFT_PROVIDER_BASE_URL": "u",
        "NIGHTSHIFT_MODEL": "m",
        "X_API_KEY": "k",
    }
    assert without_keys({**keys, **ours, "PATH": "/bin", "NIGHTSHIFT_HOME": "/h"}) == {
        "PATH": "/bin",
        "NIGHTSHIFT_HOME": "/h",
    }


def test_a_log_file_is_turned_over_by_size_and_only_two_older_ones_are_kept(folder: Path) -> None:
    log = LogFile(folder / "api.log", largest=100)
    for number in range(40):
        log.write(f"line {number:03d} {'.' * 20}".encode())
    log.close()
    sizes = {path.name: path.stat().st_size for path in folder.iterdir()}
    assert sorted(sizes) == ["api.log", "api.log.1", "api.log.2"]
    assert max(sizes.values()) <= 100
    assert "line 039" in (folder / "api.log").read_text()


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ('{"event": "turn done", "level": "info", "turn": "t1", "timestamp": "x"}', "turn done turn=t1"),
        ('{"event": "slow", "level": "warning"}', "WARNING slow"),
        ("plain \x1b[31mred\x07", "plain �[31mred�"),
        ('{"not": "ours"}', '{"not": "ours"}'),
        ("{broken", "{broken"),
    ],
)
def test_a_log_line_is_readable_and_cannot_steer_the_terminal(line: str, shown: str) -> None:
    assert readable(line) == shown


def test_an_ordinary_user_needs_no_root_and_no_namespace(folder: Path) -> None:
    """As root the starter becomes uid 65534, keeping only the right to read, for its interpreter may be root's own."""
    script = (
        "import os, sys; from pathlib import Path; from deploy.local.servers import ephemeral\n"
        "from deploy.local.spawn import unprivileged\n"
        "with ephemeral(Path(sys.argv[1])) as servers: print(os.geteuid(), unprivileged().value, servers.postgres.kind)"
    )
    before: tuple[str, ...] = ()
    if os.geteuid() == 0:
        os.chown(folder, 65534, 65534)
        before = (
            "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
            "--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search",
        )  # fmt: skip
    user = 65534 if os.geteuid() == 0 else os.geteuid()
    assert _python(script, str(folder / "home"), before=before) == f"{user} self wheel\n"

"""Nothing of the host is reached from behind the wall: each attempt is made inside, where it must fail, and outside,
where it must succeed if whoever makes it could. As root, as an ordinary user, and behind the weaker wall.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

import pytest

from deploy.local.servers import Servers
from shared.sandbox.tiers import Tier
from tests.sandbox import attempts
from tests.sandbox.conftest import Person, cases, person

pytestmark = pytest.mark.wall(Tier.CONFINED)
HERE = Path(__file__).parent
LEFT = "a_process_left_behind"
ROOT_ONLY = frozenset(
    {
        "shadow_file", "disk_as_a_device", "mount_of_a_folder", "name_spaces_of_another_process",
        "what_runs_at_a_crash",
        "setting_of_the_network", "program_in_the_kernel", "system_file_written", "database_of_the_service",
        "valkey_of_the_service", "root_of_the_first_process", "memory_file_of_the_host",
    }
)  # fmt: skip
"""What an ordinary user cannot do outside either."""
BY_MACHINE = frozenset(
    {
        "memory_file_of_the_host", "root_of_the_first_process", "requests_past_the_filter", "key_of_the_user",
        "program_in_the_kernel",
        "users_of_its_own", "disk_as_a_device", "other_address_of_the_host", "ptrace_of_another_process",
        "memory_of_another_process", "memory_read_by_a_system_call", "file_taken_by_a_process_descriptor",
    }
)  # fmt: skip
"""What a kernel may be built without, or a host forbid; where it is, there is nothing to show outside."""


@dataclass(frozen=True)
class Results:
    inside: dict[str, dict[str, Any]]
    outside: dict[str, dict[str, Any]]
    left_inside: bool
    left_outside: bool
    ended: str


@pytest.fixture(scope="module")
def results(servers: Servers) -> Callable[[str], Results]:
    """Of a case; the drill of each person is done once."""

    @cache
    def of(name: str) -> dict[str, Results]:
        folder = Path(tempfile.mkdtemp(prefix="ns-drill-"))
        folder.chmod(0o755)
        try:
            return _drill(person(name, folder), [tier for who, tier in cases() if who == name], folder, servers)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def find(case: str) -> Results:
        name, tier = case.split("-")
        return of(name)[tier]

    return find


def _drill(who: Person, tiers: Sequence[str], folder: Path, servers: Servers) -> dict[str, Results]:
    secret = f"drill-{secrets.token_hex(8)}"
    matter = _matter(who, folder, secret, tiers)
    arguments = (str(HERE / "victim.py"), str(folder / "attached"), matter["secret_file"], f"--key={secret}")
    victim = who.start(*arguments, env={"DRILL_SECRET": secret}, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert victim.stdout is not None
        given: dict[str, object] = {**json.loads(victim.stdout.readline()), **matter, "secret": secret}
        given |= {
            "database": _postgres(servers), "valkey": _valkey(servers), "address": _address(),
            "socket": str(folder / "attached/socket"),
        }  # fmt: skip
        outside, _, left_outside = _tried(who, given, (str(HERE / "attempts.py"),), (), folder / "outside")
        found: dict[str, Results] = {}
        for tier in tiers:
            attached = "" if tier == "confined" else str(folder / "attached")
            within = (str(HERE / "within.py"), tier, str(HERE / "attempts.py"))
            inside, ended, left = _tried(who, given, within, (str(folder / f"inside-{tier}"), attached), folder)
            found[tier] = Results(inside, outside, left, left_outside, ended)
    finally:
        victim.communicate()
        Path(matter["shm_file"]).unlink()
    return found


def _matter(who: Person, folder: Path, secret: str, tiers: Sequence[str]) -> dict[str, str]:
    """Files of the host, each with the secret in it, and a workspace for inside and one for outside."""
    files = {
        "token_file": folder / "home/admin-token.secret",
        "note": folder / "other/notes.txt",
        "project": folder / "attached/project/.nightshift/admin-token.secret",
        "root_file": folder / "root.txt",
    }
    for path in (*files.values(), folder / "home/.bashrc"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(secret)
    hidden = folder / "hidden.txt"
    hidden.write_text(secret)
    shm = Path(f"/dev/shm/{folder.name}")
    shm.write_text(secret)
    workspaces = ("outside", *(f"inside-{tier}" for tier in tiers))
    for name in workspaces:
        (folder / name).mkdir()
        shutil.copy("/bin/cat", folder / name / "as-root")
    who.owns(shm, hidden, folder, *folder.rglob("*"))
    for name in workspaces:
        if os.geteuid() == 0:
            os.chown(folder / name / "as-root", 0, 0)
            (folder / name / "as-root").chmod(0o4755)
    if os.geteuid() == 0:
        os.chown(files["root_file"], 0, 0)
        files["root_file"].chmod(0o600)
    return {
        "secret_file": str(hidden), "token_file": str(files["token_file"]), "home": str(folder / "home"),
        "other": str(folder / "other"), "attached": str(folder / "attached"), "root_file": str(files["root_file"]),
        "scratch": str(folder / "outside"), "shm_file": str(shm),
    }  # fmt: skip


def _tried(
    who: Person, given: dict[str, object], before: Sequence[str], behind: Sequence[str], cwd: Path
) -> tuple[dict[str, dict[str, Any]], str, bool]:
    secret = cast("str", given["secret"])
    mark = f"left-{secrets.token_hex(6)}"
    held = os.open(cast("str", given["secret_file"]), os.O_RDONLY)
    try:
        process = who.start(
            *before, json.dumps({**given, "secret": secret[::-1], "left_name": mark}), *behind, cwd=cwd,
            env={"DRILL_SECRET": secret},
            pass_fds=(held,), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        out, complaints = process.communicate(timeout=120)
    finally:
        os.close(held)
    rows = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    assert rows, (out[-2000:], complaints[-2000:])
    return {row["name"]: row for row in rows}, complaints.strip(), _ended(mark)


def _ended(mark: str) -> bool:
    """Whether a process of that name is there; it is ended."""
    found = False
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "cmdline").read_bytes().startswith(mark.encode()):
                found = True
                os.kill(int(entry.name), signal.SIGKILL)
        except OSError:
            continue
    return found


def _postgres(servers: Servers) -> object:
    parts = urlsplit(servers.postgres.direct_url)
    host = parse_qs(parts.query).get("host", [parts.hostname or "127.0.0.1"])[0]
    port = parts.port or int(parse_qs(parts.query).get("port", ["5432"])[0])
    return f"{host}/.s.PGSQL.{port}" if host.startswith("/") else [host, port]


def _valkey(servers: Servers) -> object:
    parts = urlsplit(servers.valkey.url)
    return parts.path if "socket" in parts.scheme or parts.scheme == "unix" else [parts.hostname, parts.port]


def _address() -> str:
    """One of this host that is not the loopback's, where it has one."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect(("198.51.100.1", 9))  # nothing is sent
            return str(probe.getsockname()[0])
    except OSError:
        return "127.0.0.2"


@pytest.mark.parametrize("name", list(attempts.ATTEMPTS))
@pytest.mark.parametrize("case", [f"{name}-{tier}" for name, tier in cases()])
def test_an_attempt_fails_inside_and_succeeds_outside(results: Callable[[str], Results], case: str, name: str) -> None:
    found = results(case)
    inside, outside = found.inside[name], found.outside[name]
    if name == LEFT:
        assert found.left_outside
        assert not found.left_inside
        return
    assert not inside["got"], inside
    if not outside["got"]:
        could = name not in BY_MACHINE and not (case.startswith("ordinary") and name in ROOT_ONLY)
        assert not could, f"this shows nothing, for it fails outside too: {outside}"


@pytest.mark.parametrize("case", [f"{name}-{tier}" for name, tier in cases()])
def test_the_run_came_to_its_end_behind_the_wall_that_was_meant(results: Callable[[str], Results], case: str) -> None:
    assert results(case).ended.endswith(f"0 None {case.split('-')[1]}")
    assert set(results(case).inside) == set(attempts.ATTEMPTS)
    assert len(attempts.ATTEMPTS) >= 30

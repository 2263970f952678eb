"""Wrong settings, as a person meets them: each process ends with an exit code and one sentence that names the mend."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from tests.ground import ROOT

ROLES = ("api", "worker", "scheduler", "beat", "migrate", "up")
WRONG, FAILED = 78, 1


@dataclass(frozen=True, slots=True)
class Ended:
    code: int
    out: str
    err: str


def _start_all(home: Path, roles: tuple[str, ...], settings: Mapping[str, str]) -> dict[str, subprocess.Popen[str]]:
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": str(home)}
    env |= {f"NIGHTSHIFT_{name}": value for name, value in settings.items()}
    home.mkdir(exist_ok=True)
    return {
        role: subprocess.Popen(
            [sys.executable, "-m", "deploy.main", role], env={**env, "NIGHTSHIFT_HOME": str(home / role)}, cwd=home,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
        )
        for role in roles
    }  # fmt: skip


def _ended(process: subprocess.Popen[str], seconds: float = 60) -> Ended:
    try:
        out, err = process.communicate(timeout=seconds)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            process.wait(10)
    return Ended(process.returncode, out, err)


def _run(home: Path, roles: tuple[str, ...], settings: Mapping[str, str]) -> dict[str, Ended]:
    return {role: _ended(process) for role, process in _start_all(home, roles, settings).items()}


def _told(ended: Ended, code: int, *words: str) -> None:
    """It ended with the code, said nothing but a sentence that holds these words, and no traceback."""
    assert ended.code == code, ended
    last = [line for line in ended.err.splitlines() if line.strip()][-1]
    assert all(word in ended.err for word in words), ended
    assert "Traceback" not in ended.err, ended
    assert "ready" not in ended.out.replace("rehearsal ready", ""), ended
    assert last.isprintable(), repr(last)


@pytest.mark.parametrize(
    ("roles", "settings", "words"),
    [
        (ROLES, {"SLTOS": "3"}, ("NIGHTSHIFT_SLTOS is not a setting", "Did you mean NIGHTSHIFT_SLOTS?")),
        (("up",), {"SLOTS": "many"}, ("NIGHTSHIFT_SLOTS", "'many'")),
        (("up",), {"TEAM_ZONE": "Europe/Atlantis"}, ("NIGHTSHIFT_TEAM_ZONE", "'Europe/Atlantis'", "IANA")),
        (
            ("up", "api", "scheduler"),
            {"APPROVE_TOOLS": "write_file:boss"},
            ("NIGHTSHIFT_APPROVE_TOOLS", "'boss'", "admin"),
        ),
        (("worker",), {"APPROVE_TOOLS": "write_flie"}, ("NIGHTSHIFT_APPROVE_TOOLS", "'write_flie'", "write_file")),
    ],
)
def test_a_wrong_variable_stops_a_process_and_is_named(
    tmp_path: Path, roles: tuple[str, ...], settings: Mapping[str, str], words: tuple[str, ...]
) -> None:
    for ended in _run(tmp_path, roles, settings).values():
        _told(ended, WRONG, *words)
        assert len(ended.err.strip().splitlines()) == 1


def test_a_wrong_key_of_the_file_is_named_with_the_file(tmp_path: Path) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text('slts = 3\nmodel = "x"\n', "utf-8")
    for ended in _run(tmp_path, ("migrate",), {"CONFIG": str(file)}).values():
        _told(ended, WRONG, str(file), "'slts' is not a setting", "Did you mean slots?")


def test_a_value_of_the_wrong_type_in_the_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text('lease_s = "soon"\n', "utf-8")
    (ended,) = _run(tmp_path, ("up",), {"CONFIG": str(file)}).values()
    _told(ended, WRONG, "LEASE_S", "'soon'")


def test_a_secret_is_not_shown_when_its_neighbour_is_wrong(tmp_path: Path) -> None:
    given = {
        "PROVIDER_KIND": "telepathy",
        "PROVIDER_KEY": "sesame",
        "DATABASE_URL": "postgresql://a:sesame@127.0.0.1/x",
    }
    for ended in _run(tmp_path, ("migrate",), given).values():
        _told(ended, WRONG, "NIGHTSHIFT_PROVIDER_KIND", "'telepathy'")
        assert "sesame" not in ended.err + ended.out


def test_an_unreachable_database_is_told_with_its_reason(tmp_path: Path) -> None:
    given = {"DATABASE_URL": "postgresql://anna:sesame@127.0.0.1:1/none", "REDIS_URL": "redis://127.0.0.1:1/0"}
    for role, ended in _run(tmp_path, ("worker", "up"), given).items():
        _told(ended, FAILED, "Connection refused", "127.0.0.1", "NIGHTSHIFT_DATABASE_URL")
        assert "sesame" not in ended.err + ended.out, role


def test_a_scheduler_waits_for_a_database_that_is_away_and_says_so(tmp_path: Path) -> None:
    given = {"DATABASE_URL": "postgresql://anna:sesame@127.0.0.1:1/none", "REDIS_URL": "redis://127.0.0.1:1/0"}
    process = _start_all(tmp_path, ("scheduler",), given)["scheduler"]
    assert process.stderr is not None
    said = next(line for line in process.stderr if "no_database" in line)
    process.terminate()
    ended = _ended(process, 15)
    assert (ended.code, "sesame" in said + ended.err) == (0, False)


def _wrong_password(url: str) -> str:
    with psycopg.connect(url) as connection:
        password = connection.info.password
    assert password
    assert password in url
    return url.replace(password, "sesame")


def test_a_wrong_password_is_told_as_such(tmp_path: Path, database_url: str, redis_url: str) -> None:
    given = {"DATABASE_URL": _wrong_password(database_url), "REDIS_URL": redis_url}
    for role, ended in _run(tmp_path, ("api", "worker"), given).items():
        _told(ended, ended.code, "password authentication failed", "user and password in NIGHTSHIFT_DATABASE_URL")
        assert ended.code in (WRONG, FAILED)
        assert "sesame" not in ended.err + ended.out, role


def test_a_database_newer_than_the_code_is_refused_by_every_process_that_uses_it(
    tmp_path: Path, database_url: str, redis_url: str
) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("update alembic_version set version_num = '9999'")
    given = {"DATABASE_URL": database_url, "REDIS_URL": redis_url}
    for ended in _run(tmp_path, ("api", "worker", "scheduler", "up"), given).values():
        _told(ended, WRONG, "the database is newer than this code", "9999", "upgrade Nightshift")

"""The whole stack as `./dev up` starts it: what it tells, what each process may see, and that it comes back."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from deploy.commands.checkout import without_keys
from deploy.local import processes
from deploy.local.explain import StackError
from deploy.local.home import lock_holder, open_home
from deploy.local.stack import KEEP_ADDRESS_STARTS, Fleet, plan
from shared.settings import Settings
from tests.local.conftest import ROOT

# What scripts outside rely on.
CONTRACT = {"url", "token", "database_url", "redis_url", "provider_url", "pids"}
ROLES = {"supervisor", "postgres", "valkey", "rehearsal", "api", "worker", "scheduler", "beat"}


@dataclass(frozen=True, slots=True)
class Up:
    home: Path
    process: subprocess.Popen[str]
    printed: dict[str, Any]

    def facts(self) -> dict[str, Any]:
        return json.loads((self.home / "stack.json").read_text())

    def replaced(self, role: str, old: int, seconds: float) -> bool:
        return processes.wait_until(lambda: self.facts()["pids"][role] not in ([], [old]), seconds)


def environment(home: Path) -> dict[str, str]:
    ours = {"NIGHTSHIFT_HOME": str(home), "NIGHTSHIFT_REHEARSAL": "1", "ANTHROPIC_API_KEY": "a-real-key"}
    ours["NIGHTSHIFT_SECRET_OWN"] = "a-secret-of-the-team"
    return {**without_keys(), **ours, "PYTHONPATH": str(ROOT)}


def dev(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "deploy.main", *words]
    return subprocess.run(
        command, env=environment(home), cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.fixture(scope="module")
def up() -> Generator[Up]:
    home = Path(tempfile.mkdtemp(prefix="ns-up-"))
    process = subprocess.Popen(
        [sys.executable, "-m", "deploy.main", "dev-up", "--json", "--workers", "1", "--concurrency", "2"],
        env=environment(home), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, (home / "logs").exists()
    yield Up(home, process, json.loads(line))
    process.send_signal(signal.SIGTERM)
    process.stdout.close()
    process.wait(90)
    shutil.rmtree(home)


def test_the_stack_file_says_what_the_contract_names_and_json_prints_the_same(up: Up) -> None:
    facts = up.facts()
    assert set(facts) >= CONTRACT
    assert set(facts["pids"]) == ROLES
    assert {name: facts[name] for name in CONTRACT - {"pids"}} == {
        name: up.printed[name] for name in CONTRACT - {"pids"}
    }
    assert (up.home / "stack.json").stat().st_mode & 0o777 == 0o600
    assert facts["servers"]["postgres"]["kind"] == "wheel"
    assert facts["pids"]["supervisor"] == [up.process.pid]


def test_its_token_opens_the_api(up: Up) -> None:
    facts = up.facts()
    answer = httpx.get(f"{facts['url']}/v1/sessions", headers={"Authorization": f"Bearer {facts['token']}"}, timeout=10)
    assert answer.status_code == 200
    assert httpx.get(f"{facts['url']}/v1/sessions", timeout=10).status_code == 401


def test_a_providers_key_reaches_no_process_and_the_stand_ins_reaches_workers_alone(up: Up) -> None:
    seen: dict[str, set[str]] = {}
    for role, pids in up.facts()["pids"].items():
        if role != "supervisor":
            words = Path(f"/proc/{pids[0]}/environ").read_bytes().split(b"\0")
            seen[role] = {word.decode().partition("=")[0] for word in words if b"KEY" in word}
            assert not [word for word in words if b"a-real-key" in word]
    assert {role: names for role, names in seen.items() if names} == {"worker": {"NIGHTSHIFT_PROVIDER_KEY"}}


def test_a_secret_of_the_environment_reaches_workers_alone(up: Up) -> None:
    def has_it(pid: int) -> bool:
        return b"a-secret-of-the-team" in Path(f"/proc/{pid}/environ").read_bytes()

    pids = {role: pids[0] for role, pids in up.facts()["pids"].items() if role != "supervisor"}
    assert {role for role, pid in pids.items() if has_it(pid)} == {"worker"}


def test_only_who_reads_the_stacks_file_can_script_its_stand_in(up: Up) -> None:
    facts = up.facts()
    ledger = f"{facts['provider_url']}/rehearsal/ledger"
    assert httpx.get(ledger, timeout=10).status_code == 401
    assert httpx.get(ledger, headers={"x-rehearsal-token": facts["rehearsal_token"]}, timeout=10).status_code == 200
    assert (up.home / "stack.json").stat().st_mode & 0o077 == 0
    told = {
        role
        for role, pids in facts["pids"].items()
        if facts["rehearsal_token"].encode() in Path(f"/proc/{pids[0]}/environ").read_bytes()
    }
    assert told == {"rehearsal", "scheduler"}


def test_the_stand_in_works_in_an_empty_folder(up: Up) -> None:
    folder = processes.folder_of(up.facts()["pids"]["rehearsal"][0])
    assert folder is not None
    assert list(folder.iterdir()) == []


def test_a_killed_api_comes_back_at_the_same_address_and_the_file_names_its_new_process(up: Up) -> None:
    before = up.facts()
    old = before["pids"]["api"][0]
    os.kill(old, signal.SIGKILL)
    assert up.replaced("api", old, 5)

    def answers() -> bool:
        try:
            return httpx.get(f"{before['url']}/healthz", timeout=2).status_code == 200
        except httpx.TransportError:
            return False

    assert processes.wait_until(answers, 30, 0.1)
    assert up.facts()["url"] == before["url"]


def test_logs_and_psql_reach_the_running_stack(up: Up) -> None:
    logs = dev(up.home, "dev-logs", "worker")
    assert "nightshift worker ready" in logs.stdout
    rows = dev(up.home, "dev-psql", "-At", "-c", "select name, role from principals where name = 'admin'")
    assert rows.stdout == "admin|admin\n"


def test_a_second_up_is_refused_and_down_stops_the_first(up: Up) -> None:
    second = dev(up.home, "dev-up")
    assert second.returncode == 1
    assert second.stderr.count("\n") == 1
    assert f"(pid {up.process.pid})" in second.stderr
    pids = [pid for found in up.facts()["pids"].values() for pid in found]
    down = dev(up.home, "dev-down")
    assert (down.returncode, down.stdout) == (0, f"The stack in {up.home} has stopped.\n")
    assert processes.wait_until(lambda: not [pid for pid in pids if processes.is_alive(pid)], 5)
    assert not (up.home / "stack.json").exists()
    assert lock_holder(up.home) is None
    assert dev(up.home, "dev-down").stdout == f"No stack runs in {up.home}.\n"


def test_a_wrong_setting_ends_the_start_with_its_name(folder: Path) -> None:
    wrong = {**environment(folder / "home"), "NIGHTSHIFT_SLOTS": "many"}
    command = [sys.executable, "-m", "deploy.main", "dev-up"]
    done = subprocess.run(command, env=wrong, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 78
    assert done.stderr.startswith("NIGHTSHIFT_SLOTS: ")


def test_servers_given_by_url_are_not_started_and_a_real_key_reaches_workers_alone(folder: Path) -> None:
    given = Settings(
        database_url="postgresql://db.example/x",
        database_direct_url="postgresql://direct.example/x",
        redis_url="redis://keys.example/0",
        provider_key="a-real-key",
    )
    stack = plan(open_home(folder / "home"), given, Fleet(workers=2))
    assert stack.servers == {"postgres": {"kind": "url"}, "valkey": {"kind": "url"}}
    assert [program.name for program in stack.programs] == [
        "migrate", "api", "worker-1", "worker-2", "scheduler", "beat",
    ]  # fmt: skip
    with_key = [program.name for program in stack.programs if "a-real-key" in program.environment().values()]
    assert with_key == ["worker-1", "worker-2"]
    seen = stack.programs[0].environment()
    assert seen["NIGHTSHIFT_DATABASE_URL"] == "postgresql://db.example/x"
    assert seen["NIGHTSHIFT_DATABASE_DIRECT_URL"] == "postgresql://direct.example/x"


def test_the_test_clock_is_refused_on_servers_that_are_not_the_stacks_own(folder: Path) -> None:
    given = Settings(database_url="postgresql://db.example/x", test_clock=True)
    with pytest.raises(StackError, match="works with the embedded servers only"):
        plan(open_home(folder / "home"), given, Fleet())


def test_an_api_whose_port_someone_took_meanwhile_gets_another_after_some_tries(folder: Path) -> None:
    given = Settings(database_url="postgresql://db.example/x", redis_url="redis://keys.example/0")
    stack = plan(open_home(folder / "home"), given, Fleet())
    api = next(program for program in stack.programs if program.role == "api")
    ports = [api.environment()["NIGHTSHIFT_API_PORT"]]
    api.settle("nightshift api ready http://127.0.0.1:4711")
    ports += [api.environment()["NIGHTSHIFT_API_PORT"] for _ in range(KEEP_ADDRESS_STARTS + 1)]
    assert ports == ["0", *["4711"] * KEEP_ADDRESS_STARTS, "0"]

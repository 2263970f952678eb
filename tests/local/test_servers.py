"""The embedded servers: private, durable, and started again whatever a killed one, or someone else, left behind."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import redis
from kombu.connection import Connection

from deploy.local import postgres, processes, valkey
from deploy.local.binaries import find_major, find_postgres
from deploy.local.explain import StackError
from deploy.local.home import locked, open_home
from deploy.local.launch import NOBODY
from deploy.local.nobody import OUTSIDE
from deploy.local.servers import Servers, ephemeral, restart, start, start_valkey, stop
from deploy.local.spawn import Identity


def keys_of(url: str) -> Any:
    """redis-py's methods are half typed; what they answer is compared below."""
    return redis.Redis.from_url(url)  # pyright: ignore[reportUnknownMemberType] - its **kwargs have no type


def reach(url: str) -> None:
    with Connection(url) as connection:
        connection.ensure_connection(max_retries=1, timeout=5)  # pyright: ignore[reportUnknownMemberType] - no types


def ask(url: str, statement: str) -> object:
    with psycopg.connect(url, autocommit=True, connect_timeout=5) as connection:
        row = connection.execute(statement.encode()).fetchone()
    return row[0] if row else None


def write(url: str, statement: str) -> None:
    with psycopg.connect(url, autocommit=True, connect_timeout=5) as connection:
        connection.execute(statement.encode())


@pytest.fixture(scope="module")
def made() -> Generator[Path]:
    """A home whose database is made already: copying one takes a tenth of making one."""
    path = Path(tempfile.mkdtemp(prefix="ns-made-"))
    with ephemeral(path / "home"):
        pass
    yield path / "home"
    shutil.rmtree(path)


@pytest.fixture
def home(folder: Path, made: Path) -> Path:
    shutil.copytree(made, folder / "home")
    return folder / "home"


@pytest.fixture
def servers(home: Path) -> Generator[Servers]:
    with ephemeral(home) as found:
        yield found


def test_both_servers_answer_over_private_sockets_and_no_port(servers: Servers) -> None:
    assert ask(servers.postgres.url, "show listen_addresses") == ""
    assert ask(servers.postgres.url, "select rolsuper from pg_roles where rolname = current_user") is False
    broker = keys_of(servers.valkey.url)
    assert broker.config_get("port", "appendfsync", "maxmemory-policy") == {
        "port": "0",
        "appendfsync": "everysec",
        "maxmemory-policy": "noeviction",
    }
    reach(servers.valkey.broker_url)
    for path in (servers.home.root, servers.home.sockets, servers.home.postgres):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert [path.name for path in servers.home.root.glob("*.secret") if path.stat().st_mode & 0o077] == []


def test_a_wrong_password_is_refused_by_both(servers: Servers) -> None:
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        ask(re.sub(r":\w+@", ":wrong@", servers.postgres.url), "select 1")
    with pytest.raises(redis.AuthenticationError):
        keys_of(re.sub(r":\w+@", ":wrong@", servers.valkey.url)).ping()


def test_no_password_stands_in_a_process_list(servers: Servers) -> None:
    words = [*processes.command_line(servers.postgres.pid), *processes.command_line(servers.valkey.pid)]
    secrets = [path.read_text().strip() for path in servers.home.root.glob("*.secret")]
    assert len(secrets) == 3
    assert [word for word in words if any(secret in word for secret in secrets)] == []


def test_rows_and_keys_outlive_a_kill_and_a_stop(home: Path) -> None:
    with ephemeral(home) as servers:
        write(servers.postgres.url, "create table kept as select 7 as seven")
        broker = keys_of(servers.valkey.url)
        broker.set("kept", "7", ex=600)
        broker.execute_command("WAITAOF", 1, 0, 5000)
        os.kill(servers.postgres.pid, signal.SIGKILL)
        os.kill(servers.valkey.pid, signal.SIGKILL)
        # They are ours to stop, not the context's: it holds the processes that were killed.
        database, keys = restart(servers.postgres.running), restart(servers.valkey.running)
        assert ask(servers.postgres.url, "select seven from kept") == 7
        assert keys_of(servers.valkey.url).get("kept") == b"7"
        stop(database)
        stop(keys)
    with ephemeral(home) as again:
        assert ask(again.postgres.url, "select seven from kept") == 7
        assert keys_of(again.valkey.url).get("kept") == b"7"


def test_a_stale_pid_file_with_the_number_of_another_live_process_does_not_block_the_start(home: Path) -> None:
    with ephemeral(home) as servers:
        pid_file = servers.home.postgres / "postmaster.pid"
        lines = pid_file.read_text().splitlines()
    other = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
    try:
        pid_file.write_text("\n".join([str(other.pid), *lines[1:]]) + "\n")
        with ephemeral(home) as servers:
            assert ask(servers.postgres.url, "select 1") == 1
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_a_frozen_backend_of_a_killed_postmaster_does_not_block_the_start(servers: Servers) -> None:
    with psycopg.connect(servers.postgres.url) as connection:
        backend = connection.info.backend_pid
        os.kill(backend, signal.SIGSTOP)
        os.kill(servers.postgres.pid, signal.SIGKILL)
        servers.postgres.running.process.wait()
        again = start(servers.postgres.running.server, servers.postgres.running.log)
        assert ask(servers.postgres.url, "select 1") == 1
        assert not processes.is_alive(backend)
        stop(again)
        with contextlib.suppress(psycopg.Error):
            connection.close()


def test_an_interrupted_making_of_the_data_folder_is_made_anew(folder: Path) -> None:
    home = folder / "home"
    home.mkdir(mode=0o700)
    (home / "postgres.new-0badf00d" / "base").mkdir(parents=True)
    (home / "postgres" / "base").mkdir(parents=True)
    (home / "postgres" / "PG_VERSION").write_text(f"{find_postgres().major}\n")
    with ephemeral(home) as servers:
        assert ask(servers.postgres.url, "select 1") == 1
    names = sorted(re.sub(r"\d+$", "N", path.name) for path in home.glob("postgres*") if path.is_dir())
    assert names == ["postgres", "postgres.half-made-N"]


def test_data_of_another_version_is_refused_in_a_sentence(home: Path) -> None:
    (home / "postgres" / "PG_VERSION").write_text("12\n")
    with pytest.raises(StackError, match=r"was made by Postgres 12, and this one is \d+: .* another NIGHTSHIFT_HOME"):
        ephemeral(home).__enter__()


@pytest.mark.parametrize("name", ["long-" + "x" * 120, "with space, comma and ümlaut", "per%cent@at:colon?mark#hash"])
def test_a_home_whose_path_is_too_long_or_too_odd_for_a_socket_works(folder: Path, made: Path, name: str) -> None:
    shutil.copytree(made, folder / name / "home")
    with ephemeral(folder / name / "home") as servers:
        assert ask(servers.postgres.url, "select 1") == 1
        assert keys_of(servers.valkey.url).ping() is True
        reach(servers.valkey.broker_url)
        assert stat.S_IMODE(servers.home.sockets.stat().st_mode) == 0o700
    shutil.rmtree(servers.home.sockets)


def test_a_second_start_in_the_same_home_says_who_has_it(servers: Servers) -> None:
    with pytest.raises(StackError, match=rf"already runs in .* \(pid {os.getpid()}\): stop it with `./dev down`"):
        ephemeral(servers.home.root).__enter__()


def test_a_wrong_secret_is_explained(home: Path) -> None:
    (home / "postgres-admin.secret").write_text("f" * 48 + "\n")
    with pytest.raises(StackError, match=r"does not fit its database: put the \.secret files back"):
        ephemeral(home).__enter__()


def test_a_damaged_log_of_valkey_is_set_aside_and_it_starts_empty(folder: Path) -> None:
    home = open_home(folder / "home")
    with locked(home):
        first = start_valkey(home)
        keys_of(first.url).set("lost", "1", ex=600)
        stop(first.running)
        log = next((home.valkey / "appendonlydir").glob("*.incr.aof"))
        log.write_bytes(b"*3\r\n$3\r\nSET\r\nthis is no log" + log.read_bytes())
        second = start_valkey(home)
        assert keys_of(second.url).dbsize() == 0
        stop(second.running)
    assert len(list(home.valkey.glob("appendonlydir.damaged-*"))) == 1


def test_the_oldest_supported_postgres_serves_where_it_is_on_the_machine(folder: Path) -> None:
    """Elsewhere the newest one stands in for it, so that this test always starts a given folder's programs."""
    programs = find_major(15) or find_postgres().folder
    with ephemeral(folder / "home", pg_bin=programs) as servers:
        assert servers.postgres.kind == "given"
        assert ask(servers.postgres.url, "show server_version") is not None


@pytest.mark.parametrize("identity", [Identity.NAMESPACE, Identity.NOBODY] if os.geteuid() == 0 else [Identity.SELF])
def test_postgres_runs_as_somebody_else_for_root_and_as_ourselves_for_others(folder: Path, identity: Identity) -> None:
    home = open_home(folder / "home")
    with locked(home):
        server = postgres.prepare(home, find_postgres(), identity=identity, flush=False)
        running = start(server, home.logs / "postgres.log")
        try:
            assert ask(postgres.url(home, server), "select 1") == 1
            owner = Path(f"/proc/{running.pid}").stat().st_uid
            assert owner == (NOBODY if identity is Identity.NOBODY else os.geteuid())
        finally:
            stop(running)
            if identity is Identity.NOBODY:
                shutil.rmtree(next(path for path in server.folder.parents if path.parent == OUTSIDE))


def test_servers_end_when_the_process_that_started_them_is_killed(folder: Path) -> None:
    script = (
        "import signal, sys; from pathlib import Path; from deploy.local.servers import ephemeral\n"
        "with ephemeral(Path(sys.argv[1])) as s: print(s.postgres.pid, s.valkey.pid, flush=True); signal.pause()"
    )
    starter = subprocess.Popen([sys.executable, "-c", script, str(folder / "home")], stdout=subprocess.PIPE, text=True)
    assert starter.stdout is not None
    pids = [int(word) for word in starter.stdout.readline().split()]
    starter.kill()
    starter.communicate()
    assert len(pids) == 2
    assert processes.wait_until(lambda: not any(processes.is_alive(pid) for pid in pids), 10)


def test_a_stale_socket_is_no_obstacle(home: Path) -> None:
    found = open_home(home)
    for path in (valkey.socket_of(found), found.sockets / ".s.PGSQL.5432", found.sockets / ".s.PGSQL.5432.lock"):
        path.write_text("1\n")
    with ephemeral(home) as servers:
        assert ask(servers.postgres.url, "select 1") == 1

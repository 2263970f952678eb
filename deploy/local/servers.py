"""Owns starting the embedded servers without a supervisor: for tests, and for tools that need only a database."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

from deploy.local import postgres, processes, valkey
from deploy.local.binaries import find_postgres, find_valkey
from deploy.local.explain import StackError, cause
from deploy.local.home import Home, locked, open_home
from deploy.local.server import Server
from deploy.local.spawn import server_environment, spawn, unprivileged

START_SECONDS = 240.0
"""For one that lives and does not serve yet: on a machine with much other work a minute is not enough. One that ends is
noticed at once."""


@dataclass(slots=True)
class Running:
    """A server that serves. `pid` is the postmaster's or Valkey's own."""

    server: Server
    process: subprocess.Popen[bytes]
    log: Path

    @property
    def pid(self) -> int:
        return self.process.pid


@dataclass(frozen=True, slots=True)
class Postgres:
    url: str
    direct_url: str
    running: Running
    kind: str
    version: str

    @property
    def pid(self) -> int:
        return self.running.pid


@dataclass(frozen=True, slots=True)
class Valkey:
    url: str
    broker_url: str
    running: Running
    kind: str
    version: str

    @property
    def pid(self) -> int:
        return self.running.pid


@dataclass(frozen=True, slots=True)
class Servers:
    """Both, and the folder they live in. `restart` is for tests that hurt them."""

    home: Home
    postgres: Postgres
    valkey: Valkey


def start_postgres(home: Home, *, pg_bin: Path | None = None, fsync: bool = True) -> Postgres:
    """Serves when this returns. The caller holds the home's lock, and its thread lives as long as the server."""
    server = postgres.prepare(home, find_postgres(pg_bin), identity=unprivileged(), flush=fsync)
    running = start(server, home.logs / "postgres.log")
    address = postgres.url(home, server)
    return Postgres(address, address, running, server.kind, server.version)


def start_valkey(home: Home) -> Valkey:
    """Serves when this returns. The caller holds the home's lock, and its thread lives as long as the server."""
    server = valkey.prepare(home, find_valkey())
    log = home.logs / "valkey.log"
    try:
        running = start(server, log)
    except StackError:
        if valkey.mend(home, tail(log)) is None:
            raise
        running = start(server, log)
    return Valkey(valkey.url(home), valkey.broker_url(home), running, server.kind, server.version)


def start(server: Server, log: Path) -> Running:
    """Clears what a predecessor left, starts, waits until it serves; a StackError tells why it does not."""
    server.clear()
    with log.open("ab") as output:
        process = spawn(
            server.command,
            environment=server_environment(),
            folder=server.folder,
            output=output,
            death_signal=server.death_signal,
            identity=server.identity,
        )
    deadline = time.monotonic() + START_SECONDS
    while not server.serves(process.pid):
        if process.poll() is not None or time.monotonic() > deadline:
            _give_up(server, process, log)
        time.sleep(0.005)
    running = Running(server, process, log)
    try:
        server.settle()
    except BaseException:
        stop(running)
        raise
    return running


def _give_up(server: Server, process: subprocess.Popen[bytes], log: Path) -> None:
    code = process.poll()
    processes.end(process.pid, server.stop)
    process.wait()
    lines = tail(log)
    what = f"ended with {code}" if code is not None else f"did not serve within {START_SECONDS:.0f} s"
    reason = cause(lines) or (lines[-1] if lines else "it said nothing")
    raise StackError(f"{server.name} {what}. {reason} (log: {log}).")


def tail(log: Path, lines: int = 20) -> list[str]:
    """The last lines of a log, of at most its last 16 kB."""
    try:
        with log.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 16_384))
            return file.read().decode("utf-8", "replace").splitlines()[-lines:]
    except OSError:
        return []


def stop(running: Running) -> None:
    """Ended when this returns, by as much force as it takes."""
    for number, patience in running.server.stop:
        if running.process.poll() is not None:
            return
        running.process.send_signal(number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            running.process.wait(patience)


def restart(running: Running) -> Running:
    """The same server again, whether it was killed or still runs."""
    stop(running)
    return start(running.server, running.log)


@contextlib.contextmanager
def ephemeral(home: Path, *, fsync: bool = False, pg_bin: Path | None = None) -> Generator[Servers]:
    """Both servers for the length of a `with`. Without `fsync` a commit outlives the process, not the machine."""
    folder = open_home(home)
    with locked(folder), contextlib.ExitStack() as stack:
        database = start_postgres(folder, pg_bin=pg_bin, fsync=fsync)
        stack.callback(stop, database.running)
        broker = start_valkey(folder)
        stack.callback(stop, broker.running)
        yield Servers(folder, database, broker)

"""Owns the embedded Postgres. Its data folder is whole or not there, and no file of a killed one blocks a start."""

from __future__ import annotations

import secrets
import shutil
import signal
import subprocess
import time
from pathlib import Path

import psycopg
from psycopg import sql

from deploy.local import processes
from deploy.local.binaries import PostgresPrograms
from deploy.local.explain import StackError, cause, os_error
from deploy.local.home import Home, secret, write_private
from deploy.local.nobody import Place, place_for
from deploy.local.server import Force, Server
from deploy.local.spawn import Identity, launch_command, server_environment

ROLE = "nightshift"
DATABASE = "nightshift"
# Fast shutdown ends sessions and writes a checkpoint; immediate leaves recovery to the next start.
STOP: Force = ((signal.SIGINT, 15.0), (signal.SIGQUIT, 5.0), (signal.SIGKILL, 5.0))

# For many short transactions of a few rows, whose commits must survive a power cut.
_SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "max_connections": "300",
    "shared_buffers": "128MB",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "wal_buffers": "16MB",
    "max_wal_size": "1GB",
    "checkpoint_timeout": "15min",
    "synchronous_commit": "on",
    "jit": "off",
    "random_page_cost": "1.1",
    "max_parallel_workers_per_gather": "0",
    "autovacuum_naptime": "15s",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "logging_collector": "off",
    "log_destination": "stderr",
    "log_error_verbosity": "terse",  # the rest of a refusal quotes the row, with whatever people wrote into it
}
# A commit is still handed to the system before it returns, so it outlives a killed server.
_NO_FLUSH = {"fsync": "off", "full_page_writes": "off"}


def prepare(home: Home, programs: PostgresPrograms, *, identity: Identity, flush: bool = True) -> Server:
    """Makes the data folder where there is none; what comes back can be started at once."""
    place = place_for(home, programs, identity)
    _make_data(home, place, flush=flush)
    settings = _SETTINGS | ({} if flush else _NO_FLUSH)
    options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    server = str(place.programs / "postgres")
    return Server(
        name="postgres",
        command=(server, "-D", str(place.data), "-k", str(place.sockets), *options),
        folder=place.data,
        identity=identity,
        clear=lambda: clear(place.data, place.sockets),
        serves=lambda pid: _serves(place.data, pid),
        settle=lambda: _settle(home, place.sockets),
        stop=STOP,
        death_signal=signal.SIGINT,
        kind=programs.kind,
        version=programs.version,
    )


def url(home: Home, server: Server, database: str = DATABASE) -> str:
    sockets = server.command[server.command.index("-k") + 1]
    return f"postgresql://{ROLE}:{secret(home, 'postgres')}@/{database}?host={sockets}"


def _make_data(home: Home, place: Place, *, flush: bool) -> None:
    """initdb works under another name that is changed when the folder is whole: an interrupted one is never used."""
    data = place.data
    try:
        for leftover in data.parent.glob(f"{data.name}.new-*/"):
            shutil.rmtree(leftover, ignore_errors=True)
        if _is_whole(data, place.major):
            return
        if data.exists():
            data.rename(data.with_name(f"{data.name}.half-made-{int(time.time())}"))
    except OSError as error:
        raise os_error(error, "looking through", data) from error
    fresh = data.with_name(f"{data.name}.new-{secrets.token_hex(4)}")
    word = data.with_name(f"{data.name}.new-password")  # whom the server runs as must be able to read it
    write_private(word, secret(home, "postgres-admin") + "\n")
    try:
        place.own(word)
        _initdb(place, fresh, word, flush=flush)
        fresh.rename(data)
    finally:
        word.unlink(missing_ok=True)
        shutil.rmtree(fresh, ignore_errors=True)


def _is_whole(data: Path, major: int) -> bool:
    try:
        made_by = (data / "PG_VERSION").read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return False
    if not (data / "global" / "pg_control").exists():
        return False
    if made_by != str(major):
        raise StackError(
            f"The data in {data} was made by Postgres {made_by}, and this one is {major}:"
            " use that version again, or another NIGHTSHIFT_HOME."
        )
    return True


def _initdb(place: Place, fresh: Path, word: Path, *, flush: bool) -> None:
    locale = ["--locale-provider=builtin", "--locale=C.UTF-8"] if place.major >= 17 else ["--locale=C"]
    command = [
        str(place.programs / "initdb"), "-D", str(fresh), "-U", "postgres", "-E", "UTF8", *locale,
        "--auth=scram-sha-256", f"--pwfile={word}", *([] if flush else ["--no-sync"]),
    ]  # fmt: skip
    done = subprocess.run(
        launch_command(command, signal.SIGKILL, place.identity),
        capture_output=True, text=True, errors="replace", timeout=120, check=False,
        cwd=place.data.parent, env=server_environment(),
    )  # fmt: skip
    if done.returncode != 0:
        lines = (done.stdout + done.stderr).strip().splitlines()
        reason = cause(lines) or f"initdb ended with {done.returncode}: {lines[-1] if lines else 'it said nothing'}"
        raise StackError(f"The database could not be made in {place.data}. {reason}.")


def clear(data: Path, sockets: Path) -> None:
    """After this nobody works in the data folder and no file says otherwise. Only for the holder of the home's lock.

    Postgres believes a pid file whose number lives, though it may be anybody's by now; so the command line is compared.
    A number that nobody has stays for Postgres to judge: it then looks for a shared memory block still in use.
    """
    pid_file = data / "postmaster.pid"
    pid = _pid_in(pid_file)
    if pid is not None:
        if processes.is_alive(pid) and is_ours(pid, data):
            processes.end(pid, STOP)
        if processes.is_counted(pid):  # someone else's by now, or a zombie that nobody collects
            pid_file.unlink(missing_ok=True)
    for orphan in processes.inhabitants(data):
        processes.end(orphan, ((signal.SIGKILL, 5.0),))
    for leftover in sockets.glob(".s.PGSQL.*"):
        leftover.unlink(missing_ok=True)


def is_ours(pid: int, data: Path) -> bool:
    return processes.folder_of(pid) == data or str(data) in processes.command_line(pid)


def _pid_in(pid_file: Path) -> int | None:
    try:
        first = pid_file.read_text(encoding="utf-8", errors="replace").partition("\n")[0].strip()
    except OSError:
        return None
    return int(first) if first.isdigit() else None


def _serves(data: Path, pid: int) -> bool:
    """The postmaster itself writes `ready` into its pid file, so asking costs no connection."""
    try:
        lines = (data / "postmaster.pid").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return False
    return len(lines) > 7 and lines[0].strip() == str(pid) and lines[7].strip() == "ready"


def _settle(home: Home, sockets: Path) -> None:
    """The role and the database exist, whichever start of this data folder came how far. The role is no superuser."""
    word = secret(home, "postgres")
    admin = f"postgresql://postgres:{secret(home, 'postgres-admin')}@/postgres?host={sockets}&connect_timeout=10"
    try:
        with psycopg.connect(admin, autocommit=True) as connection:
            role = sql.Identifier(ROLE)
            if not connection.execute("select 1 from pg_roles where rolname = %s", (ROLE,)).fetchone():
                create = sql.SQL("create role {} login createdb password {} in role pg_monitor")
                connection.execute(create.format(role, sql.Literal(word)))
            if not connection.execute("select 1 from pg_database where datname = %s", (DATABASE,)).fetchone():
                connection.execute(sql.SQL("create database {} owner {}").format(sql.Identifier(DATABASE), role))
    except psycopg.OperationalError as error:
        if "password authentication failed" in str(error):
            raise StackError(
                f"The password in {home.root} does not fit its database: put the .secret files back,"
                " or start afresh with another NIGHTSHIFT_HOME."
            ) from error
        reason = cause(str(error).splitlines()) or str(error).strip().splitlines()[0]
        raise StackError(f"Postgres started but does not answer. {reason}.") from error

"""Owns the embedded Valkey. Its password stands in a file of 0600 and in no process list."""

from __future__ import annotations

import re
import signal
import socket
import time
from pathlib import Path

from deploy.local import processes
from deploy.local.binaries import ValkeyProgram
from deploy.local.explain import os_error
from deploy.local.home import Home, secret, write_private
from deploy.local.server import Force, Server
from deploy.local.spawn import Identity

STOP: Force = ((signal.SIGTERM, 10.0), (signal.SIGKILL, 5.0))
_DAMAGED = re.compile(r"Bad file format reading the append only file|Unexpected end of file reading the append only")


def prepare(home: Home, program: ValkeyProgram) -> Server:
    """Writes the configuration; what comes back can be started at once."""
    try:
        home.valkey.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise os_error(error, "making", home.valkey) from error
    config = home.valkey / "valkey.conf"
    write_private(config, _config(home))
    password = secret(home, "valkey")
    return Server(
        name="valkey",
        command=(str(program.server), str(config)),
        folder=home.valkey,
        identity=Identity.SELF,
        clear=lambda: clear(home),
        serves=lambda _: _serves(socket_of(home), password),
        settle=lambda: None,
        stop=STOP,
        death_signal=signal.SIGTERM,
        kind=program.kind,
        version=program.version,
    )


def socket_of(home: Home) -> Path:
    return home.sockets / "valkey.sock"


def url(home: Home) -> str:
    """What redis-py reads."""
    return f"unix://:{secret(home, 'valkey')}@{socket_of(home)}?db=0"


def broker_url(home: Home) -> str:
    """The same server in Kombu's words."""
    return f"redis+socket://:{secret(home, 'valkey')}@{socket_of(home)}?virtual_host=0"


def _config(home: Home) -> str:
    folder = str(home.valkey).replace("\\", "\\\\").replace('"', '\\"')
    lines = (
        "port 0",
        f"unixsocket {socket_of(home)}",
        "unixsocketperm 700",
        f"requirepass {secret(home, 'valkey')}",
        f'dir "{folder}"',
        'save ""',
        "appendonly yes",
        "appendfsync everysec",
        "auto-aof-rewrite-min-size 16mb",
        "maxmemory-policy noeviction",
        "daemonize no",
        'logfile ""',
        "maxclients 4096",
        "timeout 0",
    )
    return "\n".join(lines) + "\n"


def clear(home: Home) -> None:
    """Ends a predecessor that outlived its supervisor, and drops the socket of one that did not clean up."""
    config = str(home.valkey / "valkey.conf")
    for pid in processes.inhabitants(home.valkey):
        words = processes.command_line(pid)
        # Valkey rewrites its title to `valkey-server unixsocket:PATH`, so either mark tells it.
        if config in words or any(str(socket_of(home)) in word for word in words):
            processes.end(pid, STOP)
    socket_of(home).unlink(missing_ok=True)


def mend(home: Home, last_lines: list[str]) -> str | None:
    """A damaged log would stop every start. Nothing in here is truth, so it is set aside and Valkey starts empty."""
    log = home.valkey / "appendonlydir"
    if not log.exists() or not any(_DAMAGED.search(line) for line in last_lines):
        return None
    aside = home.valkey / f"appendonlydir.damaged-{int(time.time())}"
    log.rename(aside)
    return f"Valkey's log was damaged and is set aside as {aside.name}; it starts empty, which costs only a delay."


def _serves(path: Path, password: str) -> bool:
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as talk:
            talk.settimeout(1.0)
            talk.connect(str(path))
            talk.sendall(f"AUTH {password}\r\nPING\r\n".encode("ascii"))
            answer = b""
            while answer.count(b"\n") < 2:
                piece = talk.recv(256)
                if not piece:
                    return False
                answer += piece
    except OSError:
        return False
    return answer.split(b"\r\n")[1] == b"+PONG"  # `-LOADING` while it reads its log

"""Owns the rehearsal provider's process: options, sockets, the ready line, a clean stop on SIGTERM."""

import argparse
import asyncio
import gc
import importlib
import os
import signal
import socket
import sys
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deploy.rehearsal.http import Connection, Exchange, HttpRequest
from deploy.rehearsal.routes import route
from deploy.rehearsal.world import World

BACKLOG = 2_048
TOKEN_VARIABLE = "NIGHTSHIFT_REHEARSAL_TOKEN"  # noqa: S105 - the name, not the token
"""Not an option: a command line can be read by everybody on the machine."""


@dataclass(frozen=True, slots=True)
class Options:
    host: str
    port: int
    unix: Path | None


def _options(argv: list[str]) -> Options:
    parser = argparse.ArgumentParser(
        prog="nightshift rehearsal", description="The local stand-in for a model provider."
    )
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--unix", type=Path, default=None, help="listen on this socket as well")
    given = parser.parse_args(argv)
    return Options(given.host, given.port, given.unix)


def main(argv: list[str]) -> int:
    """Serve until SIGTERM or SIGINT; 0 after a clean stop, 78 when the address cannot be had."""
    options = _options(argv)
    try:
        _run(serve(options))
    except OSError as error:
        _say(f"nightshift rehearsal: cannot listen on {options.host}:{options.port}: {error}")
        return 78
    return 0


def _run(work: Coroutine[Any, Any, None]) -> None:
    factory: Callable[[], asyncio.AbstractEventLoop] | None = None
    try:
        factory = importlib.import_module("uvloop").new_event_loop
    except ImportError:
        # Slower and otherwise the same.
        factory = None
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(work)


async def serve(options: Options) -> None:
    """Listen, say so, and return once asked to stop and every connection is closed."""
    world = World(token=os.environ.get(TOKEN_VARIABLE, ""))
    connections: set[Connection] = set()

    async def handler(http: HttpRequest, exchange: Exchange) -> None:
        await route(world, http, exchange)

    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    listener = _listen(options)
    servers = [await loop.create_server(lambda: Connection(handler, connections), sock=listener, backlog=BACKLOG)]
    if options.unix is not None:
        options.unix.unlink(missing_ok=True)
        servers.append(
            await loop.create_unix_server(lambda: Connection(handler, connections), str(options.unix), backlog=BACKLOG)
        )
    # What start-up left is permanent: keep the collector from walking it at every pass, as it would stop streams.
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    _say(f"nightshift rehearsal ready http://{options.host}:{listener.getsockname()[1]}")
    await stop.wait()
    for server in servers:
        server.close()
    for connection in list(connections):
        connection.abandon()
    if options.unix is not None:
        options.unix.unlink(missing_ok=True)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _listen(options: Options) -> socket.socket:
    listener = socket.socket(socket.AF_INET6 if ":" in options.host else socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((options.host, options.port))
    listener.setblocking(False)
    return listener

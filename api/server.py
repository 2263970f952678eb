"""The API as a process: refuses a database that it does not fit, says when it listens, stops within ten seconds."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from collections.abc import Callable

import psycopg
import uvicorn
from fastapi import FastAPI

from api.app import create_app
from api.heads import BoundedHead
from shared import logs
from shared import settings as settings_module
from shared.errors import FAILED, WRONG_SETTINGS, SchemaMismatch, SettingsError
from shared.settings import Settings
from shared.store import revision

BACKLOG = 2048
GRACE_S = 3


def main(argv: list[str]) -> int:
    """`nightshift api`. 78: do not start me again, the message says what is wrong; 1: it may go better next time."""
    try:
        settings = settings_module.load()
        if argv:
            raise SettingsError(f"`nightshift api` takes no arguments (got {argv[0]})")
        _check(settings)
        listening = listen(settings.api_host, settings.api_port)
    except (SettingsError, SchemaMismatch) as error:
        return _say(error.message, WRONG_SETTINGS)
    except psycopg.OperationalError as error:
        return _say(*revision.unreachable(error))
    except OSError as error:
        return _say(f"cannot listen ({error.strerror}): see NIGHTSHIFT_API_HOST and NIGHTSHIFT_API_PORT", FAILED)
    logs.configure(settings.log_level)
    app = create_app(settings)
    _end_well(app)
    with listening:
        asyncio.run(serve(build(app), app, listening, _ready))
    return 0


def _say(sentence: str, code: int) -> int:
    sys.stderr.write(f"nightshift api: {sentence}\n")
    return code


def _check(settings: Settings) -> None:
    for name in ("database_url", "redis_url"):
        if not getattr(settings, name):
            raise SettingsError(f"NIGHTSHIFT_{name.upper()} is not set: `./dev up` starts a stack that sets it")
    try:
        with psycopg.connect(settings.database_url, autocommit=True, connect_timeout=5) as connection:
            revision.check(connection)
    except psycopg.ProgrammingError as error:  # the URL itself does not parse
        raise SettingsError(f"NIGHTSHIFT_DATABASE_URL is not a connection string: {error}") from error


def listen(host: str, port: int) -> socket.socket:
    """A listening socket whose connections send at once: head and body go out as two writes, and would wait 40 ms.

    The event loop turns Nagle's algorithm off only where the socket names its protocol.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listening.bind((host, port))
        listening.listen(BACKLOG)
    except OSError:
        listening.close()
        raise
    return listening


def build(app: FastAPI) -> uvicorn.Server:
    config = uvicorn.Config(
        app, lifespan="on", access_log=False, log_config=None, timeout_graceful_shutdown=GRACE_S, backlog=BACKLOG,
        timeout_keep_alive=30, server_header=False, ws="none", http=BoundedHead,
    )  # fmt: skip
    return uvicorn.Server(config)


async def serve(server: uvicorn.Server, app: FastAPI, listening: socket.socket, ready: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT. Streams never end by themselves, so they are sent away first."""
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    while not server.started and not serving.done():  # noqa: ASYNC110 - uvicorn tells of neither by an event
        await asyncio.sleep(0.005)
    if server.started:
        host, port = listening.getsockname()[:2]
        app.state.serving = True
        ready(f"http://{host}:{port}")
    while not server.should_exit and not serving.done():  # noqa: ASYNC110 - as above
        await asyncio.sleep(0.1)
    if server.started:
        app.state.services.hub.send_away()
    await serving


def _end_well(app: FastAPI) -> None:
    """uvicorn raises its signal again once it has stopped: then all is done, and the exit code is 0."""

    def ended(_: int, __: object) -> None:
        if not app.state.serving:
            sys.exit(0)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, ended)


def _ready(url: str) -> None:
    sys.stdout.write(f"nightshift api ready {url}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Owns the console script: process commands and `./dev`'s run here, every other is the HTTP client's.

Nothing is imported before the command is known: `nightshift --help` must not wait for Celery.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable

Command = Callable[[list[str]], int]


def run() -> None:
    """The console script."""
    sys.exit(main(sys.argv[1:]))


def main(argv: list[str]) -> int:
    command = _loaded(argv[0]) if argv else None
    if command is not None:
        return command(argv[1:])
    from api.cli.main import main as client

    return client(argv)


def _loaded(name: str) -> Command | None:
    """The command, its modules loaded without a collection: what they make stays, and looking through it for garbage
    again and again is a fifth of a worker's start. No later collection looks through it either."""
    gc.disable()
    try:
        return _process(name) or _dev(name)
    finally:
        gc.freeze()
        gc.enable()


def _process(name: str) -> Command | None:
    match name:
        case "api":
            from api.server import main as command
        case "worker":
            from workers.process import main as command
        case "scheduler":
            from scheduler.process import main as command
        case "beat":
            from scheduler.beat import main as command
        case "rehearsal":
            from deploy.rehearsal.server import main as command
        case "migrate":
            from shared.store.migrate import main as command
        case "flower":
            from deploy.commands.flower import main as command
        case "prepare":
            from deploy.commands.prepare import main as command
        case "up":
            from deploy.local.up import main as command
        case "drill":
            from deploy.drill import main as command
        case _:
            return None
    return command


def _dev(name: str) -> Command | None:
    match name:
        case "dev-up":
            from deploy.local.up import main as command
        case "dev-down":
            from deploy.commands.down import main as command
        case "dev-logs":
            from deploy.commands.logs import main as command
        case "dev-psql":
            from deploy.commands.psql import main as command
        case "dev-migrate":
            from deploy.commands.migrate import main as command
        case "dev-test":
            from deploy.commands.test import main as command
        case "dev-test-local-model":
            from deploy.commands.local_model import main as command
        case "dev-check":
            from deploy.commands.check import main as command
        case "dev-bench":
            from deploy.commands.bench import main as command
        case "dev-demo":
            from deploy.demo import main as command
        case _:
            return None
    return command


if __name__ == "__main__":
    run()

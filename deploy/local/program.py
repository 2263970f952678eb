"""Owns what the supervisor knows of a program before it runs: how to start it, when it is ready, how to stop it."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from deploy.local.server import Force, Server
from deploy.local.spawn import Identity, server_environment


def _nothing() -> None:
    return


def _no_line(line: str) -> None:  # noqa: ARG001 - takes what `settle` is given
    return


def _no_mend(lines: list[str]) -> str | None:  # noqa: ARG001 - takes what `mend` is given
    return None


@dataclass(frozen=True, slots=True)
class Program:
    """Ready is: it printed `ready_line`; or `serves` says so; or, with neither, it ended with 0: a task, run once.

    Programs of one `wave` start together, a wave when the one before is ready; they stop in the reverse of their order.
    """

    name: str
    role: str
    wave: int
    command: Callable[[], Sequence[str]]  # asked at each start, as is `environment`: ports are known only by then
    folder: Path
    environment: Callable[[], Mapping[str, str]]
    ready_line: re.Pattern[str] | None = None
    serves: Callable[[int], bool] | None = None
    clear: Callable[[], None] = _nothing
    settle: Callable[[str], None] = _no_line
    mend: Callable[[list[str]], str | None] = _no_mend
    patience: float = 120.0  # a loaded machine takes long to start eight interpreters
    stop: Force = ((signal.SIGTERM, 15.0), (signal.SIGKILL, 5.0))
    death_signal: signal.Signals = signal.SIGKILL  # a frozen process would sleep through any other
    identity: Identity = Identity.SELF
    quiet: bool = False  # its log goes to the file alone

    @property
    def is_task(self) -> bool:
        return self.ready_line is None and self.serves is None


def of_server(server: Server, wave: int, mend: Callable[[list[str]], str | None] = _no_mend) -> Program:
    return Program(
        name=server.name,
        role=server.name,
        wave=wave,
        command=lambda: server.command,
        folder=server.folder,
        environment=server_environment,
        serves=server.serves,
        clear=server.clear,
        settle=lambda _: server.settle(),
        mend=mend,
        patience=300.0,  # it may have a long log to replay
        stop=server.stop,
        death_signal=server.death_signal,
        identity=server.identity,
        quiet=True,
    )

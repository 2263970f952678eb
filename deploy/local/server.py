"""Owns what the supervisor and the tests need to know of a server: how to start it, when it serves, how to stop it."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from deploy.local.spawn import Identity

Force = Sequence[tuple[signal.Signals, float]]


@dataclass(frozen=True, slots=True)
class Server:
    """One embedded server, ready to be started again and again."""

    name: str
    command: tuple[str, ...]
    folder: Path
    identity: Identity
    clear: Callable[[], None]  # before each start: what a killed predecessor left behind
    serves: Callable[[int], bool]  # asked until true: does this pid answer?
    settle: Callable[[], None]  # once it serves: what must exist inside
    stop: Force
    death_signal: signal.Signals
    kind: str
    version: str

"""Owns the state of one provider. One event loop touches it, so it has no locks."""

import asyncio
import itertools
import secrets
import time
from dataclasses import dataclass, field
from pathlib import Path

from deploy.rehearsal.cache import PromptCache
from deploy.rehearsal.ledger import Ledger
from deploy.rehearsal.limits import Limits
from deploy.rehearsal.script import ScriptBook


@dataclass(slots=True)
class World:
    # Of the control surface, which is closed where it is empty.
    token: str = field(default="", repr=False)
    cache: PromptCache = field(default_factory=PromptCache)
    ledger: Ledger = field(default_factory=Ledger)
    scripts: ScriptBook = field(default_factory=ScriptBook)
    # The test clock moves this; only the cache's time depends on it.
    offset_s: float = 0.0
    limits: Limits = field(default_factory=Limits)
    windows: dict[str, int] = field(default_factory=dict[str, int])
    capture_to: Path | None = None
    capture_headers: bool = False
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    # Set and replaced at every change of the ledger, so that waiting for one needs no polling.
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    numbers: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))
    # Ids of calls must not repeat in a conversation that outlives this process.
    boot: str = field(default_factory=lambda: secrets.token_hex(4))

    def __post_init__(self) -> None:
        self.gate.set()

    def now(self) -> float:
        """The one clock of the cache: seconds since the epoch, moved by the test clock."""
        return time.time() + self.offset_s

    def new_request_id(self) -> str:
        return f"req_{self.boot}{next(self.numbers):08d}"

    def note_change(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()

    def reset(self) -> None:
        """Forget entries, calls and scripts; calls in flight go on."""
        self.cache.clear()
        self.ledger.clear()
        self.scripts.clear()
        self.windows.clear()
        self.limits = Limits()
        self.offset_s = 0.0
        self.gate.set()
        self.note_change()

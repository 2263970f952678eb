"""Content tracing: what went to a model and what came back, as files for whoever looks into a fault. A plane of its
own, which is off: telemetry has no place for a word of it, and what is written here goes nowhere else.

To hand a call over takes microseconds, waits for nobody and never raises; its own thread looks it through for keys and
writes. Where more comes than is written, the call is left out and counted. The folder is its owner's alone, and holds
at most what the setting says: the oldest files go first.
"""

from __future__ import annotations

import json
import os
import stat
import threading
from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import structlog

from shared.errors import SettingsError
from shared.redact import REDACTOR
from shared.settings import Settings
from shared.text import bounded

VARIABLE = "NIGHTSHIFT_CONTENT_TRACE"
WAITING_BYTES = 64 * 1024 * 1024
MOST_CHARS = 4_000_000
"""Of a request, and of an answer."""
_EVERY_S = 0.25
_END_S = 5.0
_log = structlog.stdlib.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Traced:
    """One call: `request` the body as it went out, `answer` what was said as far as it came, `tools` each call as name
    and arguments, `ended` how it ended (a stop reason, or a code)."""

    session: UUID
    turn: UUID
    call: UUID
    step: int
    purpose: str
    model: str
    request: bytes
    answer: str
    tools: tuple[tuple[str, str], ...]
    ended: str

    @property
    def size(self) -> int:
        return len(self.request) + len(self.answer) + sum(len(arguments) for _, arguments in self.tools)


class Tracer:
    """One process's. `dropped` calls found no room, `failed` ones could not be written."""

    def __init__(self, folder: Path, most_bytes: int, waiting_bytes: int = WAITING_BYTES) -> None:
        """Raises SettingsError where the folder cannot be, or is open to others."""
        self.dropped = self.failed = 0
        self._folder, self._most, self._room = folder, most_bytes, waiting_bytes
        self._waiting: deque[Traced] = deque()
        self._bytes = 0
        self._lock = threading.Lock()
        self._stop = threading.Event()
        _own(folder)
        self._thread = threading.Thread(target=self._run, name="content-trace", daemon=True)
        self._thread.start()

    def put(self, traced: Traced) -> None:
        """From any thread. The lock is held for two sums, never while anything is looked through or written."""
        with self._lock:
            if self._bytes + traced.size > self._room:
                self.dropped += 1
                return
            self._bytes += traced.size
            self._waiting.append(traced)

    def close(self) -> None:
        """What waits is written, as far as that goes within a few seconds."""
        self._stop.set()
        self._thread.join(_END_S)

    def _run(self) -> None:
        while not self._stop.wait(_EVERY_S):
            self._drain()
        self._drain()

    def _drain(self) -> None:
        wrote = False
        while (traced := self._next()) is not None:
            try:
                _write(self._folder / f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{traced.call}.json", _text(traced))
                wrote = True
            except Exception as error:  # noqa: BLE001 - a full disk, or whatever else, must not end the plane, nor a turn
                self.failed += 1
                _log.warning("content_trace.failed", error=type(error).__name__)
        if wrote:
            self._bound()

    def _next(self) -> Traced | None:
        with self._lock:
            if not self._waiting:
                return None
            traced = self._waiting.popleft()
            self._bytes -= traced.size
            return traced

    def _bound(self) -> None:
        """Names begin with the time, so the first are the oldest. Another process may have been faster."""
        try:
            files = sorted((one.name, one.stat().st_size) for one in os.scandir(self._folder) if one.is_file())
            over = sum(size for _, size in files) - self._most
            for name, size in files:
                if over <= 0:
                    break
                (self._folder / name).unlink(missing_ok=True)
                over -= size
        except OSError as error:
            self.failed += 1
            _log.warning("content_trace.failed", error=type(error).__name__)


def begin(settings: Settings) -> Tracer | None:
    """None where nobody asked for it, which is the rule. Raises SettingsError."""
    if settings.content_trace is None:
        return None
    _log.warning("content_trace.on", folder=str(settings.content_trace), most_mb=settings.content_trace_mb)
    return Tracer(settings.content_trace, settings.content_trace_mb * 1024 * 1024)


def _own(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        raise SettingsError(f"{VARIABLE}: {folder} cannot be made ({type(error).__name__})") from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise SettingsError(
            f"{VARIABLE}: {folder} must be a folder of this user's alone (chmod 700): it will hold what was said"
        )


def _text(traced: Traced) -> str:
    """As JSON, every text looked through for keys: what cannot be looked through is withheld (shared/redact.py)."""

    def clean(text: str) -> str:
        return bounded(REDACTOR.clean(text).text, MOST_CHARS)

    return json.dumps({
        "at": datetime.now(UTC).isoformat(), "session": str(traced.session), "turn": str(traced.turn),
        "call": str(traced.call), "step": traced.step, "purpose": traced.purpose, "model": traced.model,
        "ended": traced.ended, "request": clean(traced.request.decode("utf-8", "replace")),
        "answer": clean(traced.answer),
        "tools": [{"name": clean(name), "arguments": clean(arguments)} for name, arguments in traced.tools],
    })  # fmt: skip


def _write(path: Path, text: str) -> None:
    """A new file, never through a link, readable by its owner alone from its first byte on."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o600), "w", encoding="utf-8") as file:
        file.write(text)

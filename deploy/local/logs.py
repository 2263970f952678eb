"""Owns where a child's lines go: whole into a file that is turned over by size, and readable to the terminal."""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path
from typing import IO, Any, cast

LARGEST_BYTES = 10 * 1024 * 1024
KEPT = 2  # turned-over files beside the current one
_DULL = frozenset({"event", "level", "timestamp", "logger", "role", "boot_id"})
_COLOURS = (36, 35, 34, 33, 32, 96, 95, 94)


class LogFile:
    """Appends lines to one file of bounded size. A disk that is full loses log lines, never a process."""

    def __init__(self, path: Path, largest: int = LARGEST_BYTES) -> None:
        self._path = path
        self._largest = largest
        self._file: IO[bytes] | None = None

    def write(self, line: bytes) -> None:
        with contextlib.suppress(OSError):
            if self._file is None:
                self._file = self._path.open("ab", buffering=0)
            if self._file.tell() + len(line) > self._largest:
                self._turn_over()
            self._file.write(line + b"\n")

    def _turn_over(self) -> None:
        self.close()
        for number in range(KEPT, 1, -1):
            older = self._path.with_name(f"{self._path.name}.{number - 1}")
            if older.exists():
                older.replace(self._path.with_name(f"{self._path.name}.{number}"))
        self._path.replace(self._path.with_name(f"{self._path.name}.1"))
        self._file = self._path.open("ab", buffering=0)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


class Terminal:
    """Prefixed lines on stderr, so stdout stays for what a script reads. A terminal that is gone silences it."""

    def __init__(self, stream: IO[str] | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._colours = self._stream.isatty()
        self._gone = False

    def line(self, name: str, text: str) -> None:
        prefix = f"{name:<10} |"
        if self._colours:
            prefix = f"\x1b[{_COLOURS[sum(name.encode()) % len(_COLOURS)]}m{prefix}\x1b[0m"
        self._write(f"{prefix} {text}\n")

    def say(self, text: str) -> None:
        """The supervisor's own words."""
        self.line("stack", text)

    def _write(self, text: str) -> None:
        if self._gone:
            return
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            self._gone = True


def readable(line: str) -> str:
    """A JSON log line as a person reads it; any other line as it is, without its control characters."""
    if line.startswith("{"):
        with contextlib.suppress(ValueError):
            found = json.loads(line)
            if isinstance(found, dict) and "event" in found:
                return _sentence(cast("dict[str, Any]", found))
    return "".join(sign if sign.isprintable() or sign == "\t" else "�" for sign in line)


def _sentence(entry: dict[str, Any]) -> str:
    level = str(entry.get("level", "info"))
    rest = " ".join(f"{name}={value}" for name, value in entry.items() if name not in _DULL)
    mark = "" if level in {"info", "debug"} else f"{level.upper()} "
    return readable(f"{mark}{entry['event']} {rest}".rstrip().replace("\n", " ⏎ "))

"""Owns one running process of the stack: its pipes, its last lines, its end. Readers never block."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import IO

from deploy.local.program import Program
from deploy.local.spawn import spawn

_LONGEST_LINE = 256 * 1024
LAST_LINES = 40


@dataclass(slots=True)
class Pipe:
    """One output of a child, cut into lines."""

    file: IO[bytes]
    is_stdout: bool
    rest: bytearray = field(default_factory=bytearray)

    def read(self) -> tuple[list[bytes], bool]:
        """The whole lines that are there now, and whether more may come."""
        try:
            piece = os.read(self.file.fileno(), 65_536)
        except BlockingIOError:
            return [], True
        except (OSError, ValueError):
            piece = b""
        self.rest += piece
        if not piece:
            lines, self.rest = [bytes(self.rest)] if self.rest else [], bytearray()
            return lines, False
        *lines, rest = bytes(self.rest).split(b"\n")
        if len(rest) > _LONGEST_LINE:  # no newline for too long: a flood must not fill our memory
            lines, rest = [*lines, rest], b""
        self.rest = bytearray(rest)
        return lines, True


class Child:
    """A started program. `on_line(child, line)` gets every line, in the order of each pipe."""

    def __init__(self, program: Program, on_line: Callable[[Child, str], None]) -> None:
        self.program = program
        self.started = time.monotonic()
        self.ready = False
        self.last: deque[str] = deque(maxlen=LAST_LINES)
        self._on_line = on_line
        program.clear()
        self.process: subprocess.Popen[bytes] = spawn(
            program.command(),
            environment=program.environment(),
            folder=program.folder,
            output=subprocess.PIPE,
            death_signal=program.death_signal,
            identity=program.identity,
        )
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self.pipes = [Pipe(self.process.stdout, is_stdout=True), Pipe(self.process.stderr, is_stdout=False)]
        for pipe in self.pipes:
            os.set_blocking(pipe.file.fileno(), False)

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def age(self) -> float:
        return time.monotonic() - self.started

    def pump(self, pipe: Pipe) -> bool:
        """Hands on what is there; False when the pipe is at its end."""
        lines, more = pipe.read()
        for raw in lines:
            line = raw.decode("utf-8", "replace").rstrip("\r")
            if line:
                self.last.append(line)
                self._on_line(self, line)
        return more

    def ended(self) -> int | None:
        return self.process.poll()

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def collect(self) -> None:
        """After its end: hands on the last lines, and ends what it started and left behind in its session."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        for pipe in self.pipes:
            # Bounded: a grandchild in a session of its own may hold the pipe open and go on writing.
            for _ in range(64):
                before = len(pipe.rest)
                if not self.pump(pipe) or len(pipe.rest) == before:
                    break
            pipe.file.close()

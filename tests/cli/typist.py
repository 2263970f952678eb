"""A command on a terminal of its own, a chat where none is named, and what that terminal showed."""

from __future__ import annotations

import contextlib
import os
import pty
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 60


class Typist:
    """Types lines, presses Ctrl-C, and waits until words are on the screen."""

    def __init__(self, *words: str, environment: Mapping[str, str] = os.environ, command: str = "chat") -> None:
        self.master, slave = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "api.cli", command, *words],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=ROOT,
            env={**environment, "TERM": "xterm"},
            start_new_session=True,
        )
        os.close(slave)
        self.shown = ""
        self.changed = threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        while True:
            try:
                piece = os.read(self.master, 4096)
            except OSError:
                piece = b""
            with self.changed:
                self.shown += piece.decode("utf-8", "replace")
                self.changed.notify_all()
            if not piece:
                return

    def type(self, line: str) -> None:
        os.write(self.master, line.encode() + b"\n")

    def see(self, words: str, count: int = 1) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: self.shown.count(words) >= count, PATIENCE), self.shown

    def interrupt(self) -> None:
        self.process.send_signal(signal.SIGINT)

    def interrupt_until_gone(self) -> int:
        """As a person does who wants out: words on the screen do not say that their turn is over, and a Ctrl-C in that
        moment still stops the turn."""
        for _ in range(PATIENCE):
            self.interrupt()
            with contextlib.suppress(subprocess.TimeoutExpired):
                return self.process.wait(1)
        return self.leave()

    def leave(self) -> int:
        return self.process.wait(PATIENCE)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.master)

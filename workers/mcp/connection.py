"""The worker's end of one bridge: questions go out with a number, answers are handed to who waits for them.

One thread a bridge reads what comes. When the bridge is gone, everybody who waits hears of it at once.
"""

from __future__ import annotations

import itertools
import math
import os
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from workers.mcp import frames
from workers.tools import child
from workers.tools.launcher import NAME_BYTES

_ALIVE_S = 5.0
_LOOK_EVERY_S = 0.05


class Gone(Exception):
    """The bridge or its server is no more. Of a call that was out nobody knows what became."""


class Late(Exception):
    """No answer in time."""


class Refused(Exception):
    """The bridge answered, with a word of ours for what went wrong."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class Connection:
    """A bridge that runs. `changed` is called from its thread when the server says that its tools are others."""

    def __init__(self, setup: dict[str, Any], changed: Callable[[], None]) -> None:
        """Raises `frames.Broken` for a setup that is too long, and OSError where no process can be had."""
        self._changed = changed
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._sending = threading.Lock()
        self._waiting: dict[int, _Answer] = {}
        self._gone = threading.Event()
        self._first = _Answer()
        data = frames.encode(setup)
        self._socket = _begin()
        self._thread = threading.Thread(target=self._read, name="mcp", daemon=True)
        self._thread.start()
        self._send(data)

    def first(self, seconds: float) -> dict[str, Any]:
        """What the bridge says once it speaks with the server. Raises as `ask`."""
        return self._wait(self._first, seconds, lambda: False)

    def ask(self, seconds: float, stop: Callable[[], bool], **order: Any) -> dict[str, Any]:
        """The answer to one order. Raises Gone, Late (also once `stop` says so) and Refused."""
        number, answer = next(self._numbers), _Answer()
        with self._lock:
            if self._gone.is_set():
                raise Gone
            self._waiting[number] = answer
        try:
            self._send(frames.encode({"id": number, **order}))
            return self._wait(answer, seconds, stop)
        except Late:
            with suppress(Gone):
                self._send(frames.encode({"id": number, "cancel": True}))
            raise
        finally:
            with self._lock:
                self._waiting.pop(number, None)

    def lives(self) -> bool:
        """Whether the bridge still answers: one that reads a hundred megabytes does not."""
        try:
            self.ask(_ALIVE_S, lambda: False, do="alive")
        except (Gone, Late, Refused):
            return False
        return True

    @property
    def gone(self) -> bool:
        return self._gone.is_set()

    def close(self) -> None:
        """The bridge and its server end."""
        self._gone.set()
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join(2)
        self._socket.close()
        self._tell_all()

    def _send(self, data: bytes) -> None:
        try:
            with self._sending:
                self._socket.sendall(data)
        except OSError as error:
            raise Gone from error

    def _wait(self, answer: _Answer, seconds: float, stop: Callable[[], bool]) -> dict[str, Any]:
        until = time.monotonic() + seconds
        while not answer.there.wait(_LOOK_EVERY_S):
            if stop() or time.monotonic() >= until:
                raise Late
        if answer.message is None:
            raise Gone
        why = answer.message.get("failed")
        if why is not None:
            raise Refused(str(why))
        return answer.message

    def _read(self) -> None:
        try:
            while True:
                message = frames.decode(_exactly(self._socket, frames.length(_exactly(self._socket, frames.HEAD))))
                self._hand_over(message)
        except (OSError, frames.Broken, ValueError, TypeError):
            pass  # what comes last is the launcher's word that the bridge is gone, which is no message
        self._gone.set()
        self._tell_all()

    def _hand_over(self, message: dict[str, Any]) -> None:
        if message.get("changed"):
            self._changed()
            return
        number = message.get("id")
        with self._lock:
            answer = self._first if number is None else self._waiting.get(int(number))
        if answer is not None:
            answer.message = message
            answer.there.set()

    def _tell_all(self) -> None:
        with self._lock:
            waiting = [self._first, *self._waiting.values()]
        for answer in waiting:
            answer.there.set()


class _Answer:
    """One that is waited for. There without a message: the bridge is gone."""

    def __init__(self) -> None:
        self.there = threading.Event()
        self.message: dict[str, Any] | None = None


def _begin() -> socket.socket:
    """A bridge, forked by the launcher: with it ends all that its server started."""
    ours, theirs = socket.socketpair()
    with theirs:
        child.LAUNCHER.submit(theirs, os.urandom(NAME_BYTES), math.inf)
    order = b'{"job": "mcp", "until": 1e12, "acts": false}'
    try:
        ours.sendall(len(order).to_bytes(4, "big") + order)
    except OSError:
        ours.close()
        raise
    return ours


def _exactly(source: socket.socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        piece = source.recv(min(65_536, count - len(data)))
        if not piece:
            raise frames.Broken("the end")
        data += piece
    return bytes(data)

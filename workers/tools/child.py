"""Jobs in child processes, from the worker's side: what comes back, and that nothing outlives its time or its turn.

One launcher a worker process, started at the first job and again should it ever die. The product's jobs are pure
questions (they read, they change nothing), so one that met a dying launcher, or came to it too late, is asked again. A
run that may happen only once is not: it is stopped where its job was not begun, and lost where nobody knows.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from shared.boottime import boottime
from shared.values import Repeat
from workers.pause import Point
from workers.tools.context import ToolContext, ToolLost, ToolRefused, check_going, cut_off
from workers.tools.launcher import NAME_BYTES, TOO_LATE, encode_order

_ROOM = str(Path(__file__).resolve().parents[2])
_BOOT = "import sys; sys.path.insert(0, sys.argv[1]); from workers.tools.launcher import main; main(int(sys.argv[2]))"
_LOOK_EVERY_S = 0.05
_TRIES = 2
_AT_ONCE = threading.BoundedSemaphore(max(2, (os.cpu_count() or 2)))
"""Children compete with the worker's own threads for the cores; more of them at once finish no sooner."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a child wrote. `end` as `launcher.encode_end` says; None: it wrote more than was wanted and was stopped."""

    data: bytes
    end: int | None


class LauncherGone(Exception):
    """The launcher died with the job; nothing is known of it."""


class NotBegun(Exception):
    """The job came to the launcher after its time, and was not started."""


class _Launcher:
    """Owns the launcher process of this worker process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner = 0
        self._control: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def submit(self, job: socket.socket, name: bytes, begin_by: float) -> None:
        """Hands the job's far end over under its name; starts the launcher where there is none."""
        order = encode_order(name, begin_by)
        with self._lock:
            if self._control is not None and self._owner == os.getpid():
                try:
                    socket.send_fds(self._control, [order], [job.fileno()])
                    return
                except OSError:
                    self._stop()
            self._start()
            assert self._control is not None
            socket.send_fds(self._control, [order], [job.fileno()])

    def start(self) -> None:
        """Has the launcher ready before the first job: it takes a fifth of a second."""
        with self._lock:
            if self._control is None or self._owner != os.getpid():
                self._start()

    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    def _start(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-X", "utf8", "-c", _BOOT, _ROOM, str(theirs.fileno())],
                env={},
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,  # Ctrl-C in a terminal is the worker's to handle
            )
        self._control, self._owner = ours, os.getpid()

    def _stop(self) -> None:
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._process is not None:
            self._process.kill()
            self._process.wait(timeout=5)
            self._process = None


LAUNCHER = _Launcher()


def ask(
    context: ToolContext, request: Mapping[str, object], fds: Sequence[int], *, seconds: float, most: int
) -> Answer:
    """Runs one job in a child of its own, at most `seconds` long, and gives what it wrote, at most `most` bytes.

    The descriptors `fds` are the child's alone. Raises `ToolStopped` when the turn is cancelled (within a tenth of a
    second) or, for a run that may happen only once, the right to act is over; `ToolRefused` when the time is over, in
    all these cases the child is dead or never was; `ToolLost` when nobody knows what became of a run that may happen
    only once.
    """
    until = min(boottime() + seconds, context.deadline)
    while not _AT_ONCE.acquire(timeout=_LOOK_EVERY_S):
        _check(context, until)
    try:
        return _ask_again(context, request, fds, until, most)
    finally:
        _AT_ONCE.release()


def _ask_again(
    context: ToolContext, request: Mapping[str, object], fds: Sequence[int], until: float, most: int
) -> Answer:
    pure = context.repeat is Repeat.REPEATABLE
    tries = 0
    while True:
        try:
            return _ask_once(context, request, fds, until, most)
        except LauncherGone as gone:
            if not pure:
                raise ToolLost("outcome unknown: what ran this is gone; it may have happened, so check") from gone
            tries += 1
            if tries == _TRIES:
                raise
        except NotBegun as late:
            if not pure:
                raise cut_off() from late


def _begin_by(context: ToolContext, until: float) -> float:
    """Until when a process of this run may be started. A lease that is over while the database is away comes back:
    a question waits for that."""
    while True:
        _check(context, until)
        right = context.act_until()
        if right > boottime():
            return min(until, right)
        if context.repeat is not Repeat.REPEATABLE:
            raise cut_off()
        time.sleep(_LOOK_EVERY_S)


def begin(
    context: ToolContext, request: Mapping[str, object], fds: Sequence[int], until: float
) -> tuple[socket.socket, bytes]:
    """Has a child begin the request: our end of its socket, and the name behind which the launcher's word on its end
    will stand. Raises as `ask` does where the run may not act any more."""
    ours, theirs = socket.socketpair()
    name = os.urandom(NAME_BYTES)
    try:
        with theirs:
            begin_by = _begin_by(context, until)
            context.pausing(Point.STARTING)
            LAUNCHER.submit(theirs, name, begin_by)
        acts = context.repeat is not Repeat.REPEATABLE
        message = json.dumps({**request, "until": until, "acts": acts}).encode()
        with suppress(BrokenPipeError, ConnectionResetError):  # what the launcher said is still there to be read
            socket.send_fds(ours, [len(message).to_bytes(4, "big")], list(fds))
            ours.sendall(message)
    except BaseException:
        ours.close()
        raise
    return ours, name


def _ask_once(
    context: ToolContext, request: Mapping[str, object], fds: Sequence[int], until: float, most: int
) -> Answer:
    ours, name = begin(context, request, fds, until)
    with ours:
        return _collect(context, ours, until, most, name)


def _collect(context: ToolContext, ours: socket.socket, until: float, most: int, name: bytes) -> Answer:
    data = bytearray()
    ours.settimeout(_LOOK_EVERY_S)
    while True:
        _check(context, until)
        try:
            piece = ours.recv(65_536)
        except TimeoutError:
            continue
        except ConnectionResetError:  # the end, as it is told where the request was not read
            break
        if not piece:
            break
        data += piece
        if len(data) > most + NAME_BYTES + 1:
            return Answer(bytes(data[:most]), None)
    body, end = last_word(data, name)
    return Answer(bytes(body[:most]), None if len(body) > most else end)


def last_word(data: bytearray, name: bytes) -> tuple[bytearray, int]:
    """All that came, without the launcher's word on how the child ended, and that word. It stands behind the job's
    name: without that, nobody has said anything, and the last byte of an answer must not be taken for it. Raises
    LauncherGone or NotBegun."""
    body, said, end = data[: -NAME_BYTES - 1], data[-NAME_BYTES - 1 : -1], data[-1:]
    if bytes(said) != name:
        raise LauncherGone
    if end[0] == TOO_LATE:
        raise NotBegun
    return body, end[0]


def _check(context: ToolContext, until: float) -> None:
    check_going(context)
    if boottime() >= until:
        raise ToolRefused("this took too long and was stopped; ask for less at once")

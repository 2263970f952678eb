"""The permanent launcher of a worker: it forks a child for each job, and ends it when nobody waits for it any more.

On the control socket comes an order with one socket a job: its name, and until when it may begin. A job that comes to
be read after that is not started, for by then others may have been told what became of it. The child reads its request
from that socket and answers there. Closing the socket's other end kills the child and all that it started. When the
child is gone the launcher adds the name and one byte, how it ended (`encode_end`, or `TOO_LATE`), and closes. What a
child left running, detached or not, is killed as soon as the child is gone. When the worker goes, its end of the
control socket closes and everything here ends. Single-threaded, so that a fork is safe.
"""

from __future__ import annotations

import gc
import math
import os
import select
import signal
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

from shared.boottime import boottime
from workers.tools import confine, jobs, strays

Work = Callable[[socket.socket, float], int]
_NICE = 5
NAME_BYTES = 16
_ORDER_BYTES = NAME_BYTES + 8
TOO_LATE = 127
"""Said of a job that was not started. No signal has that number, so no child can end like it."""
_LOOK_AGAIN_MS = 20
_END_S = 3.0


def encode_end(exit_code: int) -> int:
    """One byte for how a child ended: 0 well, 1 to 127 killed by that signal, from 128 on 128 + its exit code."""
    return -exit_code if exit_code < 0 else min(255, 128 + exit_code) if exit_code else 0


def encode_order(name: bytes, begin_by: float) -> bytes:
    """`begin_by` in seconds of `boottime`."""
    return name + (min(2**63 - 1, int(begin_by * 1e9)) if begin_by < math.inf else 2**63 - 1).to_bytes(8, "big")


def serve(control: socket.socket, work: Work) -> None:
    """Forks `work` for each socket that arrives, until `control` closes; leaves no child behind."""
    launcher = _Launcher(control, work)
    strays.adopt()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, _woken)
    signal.set_wakeup_fd(launcher.wake, warn_on_full_buffer=False)
    gc.collect()
    gc.freeze()  # keeps the collector from touching, and so copying, the shared pages in each child
    try:
        while launcher.turn():
            pass
    finally:
        launcher.end()


def _woken(number: int, frame: object) -> None:
    """A handler must stand, else no byte is written to the wake-up pipe."""
    del number, frame


class _Launcher:
    """Owns the children that run and the sockets whose last byte is not sent yet."""

    def __init__(self, control: socket.socket, work: Work) -> None:
        self._control = control
        self._work = work
        self._woken, self.wake = os.pipe()
        os.set_blocking(self._woken, False)
        os.set_blocking(self.wake, False)
        self._running: dict[int, tuple[socket.socket, bytes]] = {}
        self._ending: dict[int, tuple[socket.socket, bytes]] = {}
        self._strays = False  # whether a job that is over may have left something running
        self._poll = select.poll()
        self._poll.register(control, select.POLLIN)
        self._poll.register(self._woken, select.POLLIN)

    def turn(self) -> bool:
        """Waits for what comes next and does it; false once the worker is gone."""
        for fd, _ in self._poll.poll(_LOOK_AGAIN_MS if self._strays else None):
            if fd == self._control.fileno():
                if not self._begin():
                    return False
            elif fd == self._woken:
                with suppress(BlockingIOError):
                    os.read(self._woken, 4096)
                self._reap()
            elif fd in self._ending:
                self._finish(fd)
            else:
                self._abandon(fd)
        if self._strays:
            self._strays = strays.end(self._running)
        return True

    def end(self) -> None:
        """Leave nothing behind. Bounded: what cannot be killed (it hangs in the kernel) must not keep this process."""
        for pid in self._running:
            _kill(pid)
        until = time.monotonic() + _END_S
        while time.monotonic() < until and (self._running or strays.end(())):
            self._reap()
            time.sleep(_LOOK_AGAIN_MS / 1000)

    def _begin(self) -> bool:
        order, fds, _, _ = socket.recv_fds(self._control, _ORDER_BYTES, 1)
        if not order:
            return False
        if not fds:
            return True
        job = socket.socket(fileno=fds[0])
        name, begin_by = order[:NAME_BYTES], int.from_bytes(order[NAME_BYTES:], "big") / 1e9
        if boottime() >= begin_by:
            self._say(job, name + bytes([TOO_LATE]))
            return True
        launcher = os.getpid()
        pid = os.fork()
        if pid == 0:
            self._become_child(job, launcher, begin_by)
        self._running[pid] = (job, name)
        self._poll.register(job, 0)  # nothing but the other end's closing is told
        return True

    def _become_child(self, job: socket.socket, launcher: int, begin_by: float) -> NoReturn:
        code = 1
        try:
            confine.die_with_parent()
            strays.adopt()  # what it detaches stays its own while it lives: the launcher takes strays for leftovers
            if os.getppid() != launcher:  # it died before it could be said: nobody would tell how this child ended
                os._exit(code)
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.setsid()
            os.nice(_NICE)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # a parser's complaints quote what it read
            others = (entry[0] for entry in (*self._running.values(), *self._ending.values()))
            for other in (self._control, *others):
                other.close()
            os.close(self._woken)
            os.close(self.wake)
            code = self._work(job, begin_by)
        finally:
            # Whatever was raised: a child must never return into the launcher's loop.
            os._exit(code)

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self._strays = False  # nothing below this process lives: the common end of a job, and it costs no look
                return
            if pid == 0:
                return
            if pid not in self._running:
                continue
            _kill(pid, group_only=True)
            self._strays = True
            job, name = self._running.pop(pid)
            self._say(job, name + bytes([encode_end(os.waitstatus_to_exitcode(status))]))

    def _say(self, job: socket.socket, word: bytes) -> None:
        """The last word on a job, as soon as its other end takes it."""
        self._ending[job.fileno()] = (job, word)
        with suppress(KeyError):
            self._poll.unregister(job)
        self._poll.register(job, select.POLLOUT)

    def _finish(self, fd: int) -> None:
        job, word = self._ending.pop(fd)
        self._poll.unregister(fd)
        with suppress(OSError):
            job.send(word, socket.MSG_DONTWAIT)
        job.close()

    def _abandon(self, fd: int) -> None:
        self._poll.unregister(fd)
        for pid, (job, _) in self._running.items():
            if job.fileno() == fd:
                _kill(pid)


def _kill(pid: int, *, group_only: bool = False) -> None:
    """The child and its group; the child alone where it has not made its group yet."""
    with suppress(OSError):
        os.killpg(pid, signal.SIGKILL)
    if not group_only:
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def main(control_fd: int) -> None:
    """The launcher's whole life. What the children need is imported and used once before the first fork."""
    jobs.warm()
    serve(socket.socket(fileno=control_fd), jobs.run)

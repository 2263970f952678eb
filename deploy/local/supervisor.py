"""Owns the life of the stack's processes: what dies is started again, and all end, in order, when the supervisor ends.

One thread, one loop. It must be the thread that spawns, for the kernel ties a child to the thread that made it.
"""

from __future__ import annotations

import os
import selectors
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from deploy.local.child import Child, Pipe
from deploy.local.explain import StackError, cause
from deploy.local.logs import LogFile, Terminal, readable
from deploy.local.program import Program
from shared.errors import WRONG_SETTINGS

# How long to wait before the next start, by how many short lives came before: the first restart is at once.
BACKOFF = (0.0, 0.0, 0.2, 0.5, 1.0, 2.0, 5.0)
SHORT_LIFE = 10.0
_BUSY_TICK, _IDLE_TICK = 0.02, 0.25


class Phase(Enum):
    WAITING = "waiting"  # not running; starts when `due`, its wave and its hold allow
    STARTING = "starting"
    READY = "ready"
    DONE = "done"  # a task that ended well


@dataclass(slots=True)
class Seat:
    """A program's place in the stack, whichever process fills it now."""

    program: Program
    log: LogFile
    phase: Phase = Phase.WAITING
    child: Child | None = None
    due: float = 0.0
    short_lives: int = 0
    was_ready: bool = False


class Supervisor:
    """Runs programs until told to stop. `changed(pids by role, ready)` is called whenever a process comes or goes."""

    def __init__(
        self,
        programs: Sequence[Program],
        *,
        logs: Path,
        hold: Path,
        terminal: Terminal,
        changed: Callable[[dict[str, list[int]], bool], None],
    ) -> None:
        self._seats = [Seat(program, LogFile(logs / f"{program.name}.log")) for program in programs]
        self._hold = hold
        self._terminal = terminal
        self._changed = changed
        self._selector = selectors.DefaultSelector()
        self._signals: list[signal.Signals] = []
        self._reason: str | None = None
        self._code = 0
        self._announced = False
        self._heard = 0

    def run(self) -> int:
        """Returns when all have ended: 0 when asked to stop, 78 when a setting is wrong, 1 when a start failed."""
        with _Watch(self._selector, self._signals) as watch:
            try:
                while self._reason is None:
                    self._tick()
                    if watch.parent_is_gone():
                        self._stop_for("the process that started this stack has ended", 0)
                    elif self._signals:
                        self._stop_for(f"{self._signals[0].name} received", 0)
            except StackError as error:
                self._stop_for(str(error), 1)
            finally:
                self._stop_all()
        return self._code

    @property
    def reason(self) -> str | None:
        """Why it stopped."""
        return self._reason

    def _tick(self) -> None:
        busy = any(seat.phase is Phase.STARTING or seat.due for seat in self._seats)
        self._read(_BUSY_TICK if busy else _IDLE_TICK)
        for seat in self._seats:
            self._advance(seat)
        if not self._announced and all(seat.phase in {Phase.READY, Phase.DONE} for seat in self._seats):
            self._announced = True
            self._tell()

    def _read(self, patience: float) -> None:
        for key, _ in self._selector.select(patience):
            found: tuple[Child, Pipe] | None = key.data
            if found is None:
                _drain(key.fd)
            elif not found[0].pump(found[1]):
                self._selector.unregister(key.fileobj)

    def _advance(self, seat: Seat) -> None:
        match seat.phase:
            case Phase.WAITING:
                if self._may_start(seat):
                    self._start(seat)
            case Phase.STARTING | Phase.READY:
                assert seat.child is not None
                code = seat.child.ended()
                if code is not None:
                    self._over(seat, seat.child, code)
                elif seat.phase is Phase.STARTING:
                    self._look_whether_ready(seat, seat.child)
            case Phase.DONE:
                return

    def _may_start(self, seat: Seat) -> bool:
        if time.monotonic() < seat.due or self._is_held(seat.program):
            return False
        earlier = (other for other in self._seats if other.program.wave < seat.program.wave)
        return seat.was_ready or all(other.was_ready for other in earlier)

    def _is_held(self, program: Program) -> bool:
        """A file named like the program or its role keeps it down: outages are made so, by scripts outside."""
        return (self._hold / program.name).exists() or (self._hold / program.role).exists()

    def _start(self, seat: Seat) -> None:
        try:
            seat.child = Child(seat.program, self._on_line)
        except (OSError, StackError) as error:
            self._start_failed(seat, error)
            return
        seat.due = 0.0
        seat.phase = Phase.STARTING
        for pipe in seat.child.pipes:
            self._selector.register(pipe.file, selectors.EVENT_READ, (seat.child, pipe))
        self._tell()

    def _start_failed(self, seat: Seat, error: OSError | StackError) -> None:
        """At the first start it is told and ends all; later the stack goes on without this one and tries again."""
        reason = str(error) if isinstance(error, StackError) else f"{error.strerror}: {error.filename}"
        if not seat.was_ready:
            raise StackError(f"{seat.program.name} did not start. {reason}") from error
        seat.short_lives += 1
        delay = BACKOFF[min(seat.short_lives, len(BACKOFF) - 1)]
        seat.due = time.monotonic() + delay
        self._terminal.say(f"{seat.program.name} cannot be started ({reason}); trying again in {delay:g} s")

    def _on_line(self, child: Child, line: str) -> None:
        seat = self._seat_of(child)
        seat.log.write(line.encode())
        if not child.program.quiet:
            self._terminal.line(child.program.name, readable(line))
        pattern = child.program.ready_line
        if pattern is not None and not child.ready and pattern.search(line):
            child.ready = True
            self._is_ready(seat, line)

    def _seat_of(self, child: Child) -> Seat:
        return next(seat for seat in self._seats if seat.program is child.program)

    def _look_whether_ready(self, seat: Seat, child: Child) -> None:
        if child.program.serves is not None and child.program.serves(child.pid):
            self._is_ready(seat, "")
        elif child.age > child.program.patience:
            self._terminal.say(f"{child.program.name} is not ready after {child.program.patience:.0f} s; ending it")
            child.signal(signal.SIGKILL)

    def _is_ready(self, seat: Seat, line: str) -> None:
        try:
            seat.program.settle(line)
        except StackError as error:
            if not seat.was_ready:
                raise
            assert seat.child is not None
            seat.child.last.append(str(error))
            seat.child.signal(signal.SIGKILL)
            return
        seat.phase = Phase.READY
        seat.was_ready = True
        self._tell()

    def _over(self, seat: Seat, child: Child, code: int) -> None:
        was_starting = not seat.was_ready
        self._let_go(seat, child)
        program = seat.program
        if program.is_task and code == 0:
            program.settle("")
            seat.phase, seat.was_ready = Phase.DONE, True
            return
        lines = list(child.last)
        if code == WRONG_SETTINGS:
            self._stop_for(f"{program.name} cannot run as configured: {_last_words(lines)}", WRONG_SETTINGS)
            return
        mended = program.mend(lines)
        if was_starting and mended is None:
            raise StackError(f"{program.name} did not start ({_how(code)}). {_why(lines)}")
        seat.short_lives = seat.short_lives + 1 if child.age < SHORT_LIFE else 0
        delay = BACKOFF[min(seat.short_lives, len(BACKOFF) - 1)]
        seat.due = time.monotonic() + delay
        known = cause(lines)
        told = f"{program.name} ended ({_how(code)}); starting it again in {delay:g} s"
        self._terminal.say(mended or (f"{told}. {known}" if known else told))

    def _let_go(self, seat: Seat, child: Child) -> None:
        for pipe in child.pipes:
            if pipe.file.fileno() in self._selector.get_map():
                self._selector.unregister(pipe.file)
        child.collect()
        seat.child = None
        seat.phase = Phase.WAITING
        self._tell()

    def _stop_for(self, reason: str, code: int) -> None:
        if self._reason is None:
            self._reason, self._code = reason, code
            self._terminal.say(f"stopping: {reason}")

    def _stop_all(self) -> None:
        """Role by role in the reverse of the start, so each has what it needs. A second signal ends the patience."""
        self._heard = len(self._signals)
        roles = list(dict.fromkeys(seat.program.role for seat in self._seats))
        for role in reversed(roles):
            self._stop_role([seat for seat in self._seats if seat.program.role == role and seat.child is not None])
        for seat in self._seats:
            seat.log.close()
        self._terminal.say("stopped")

    def _stop_role(self, seats: list[Seat]) -> None:
        if not seats:
            return
        for number, patience in seats[0].program.stop:
            running = [seat.child for seat in seats if seat.child is not None]
            for child in running:
                child.signal(number)
            deadline = time.monotonic() + patience
            while time.monotonic() < deadline and any(seat.child is not None for seat in seats):
                self._read(_BUSY_TICK)
                for seat in seats:
                    if seat.child is not None and seat.child.ended() is not None:
                        self._let_go(seat, seat.child)
                if self._is_hurried() and number is not signal.SIGKILL:
                    break
            late = [seat.program.name for seat in seats if seat.child is not None]
            if not late:
                return
            waited = "so far" if self._is_hurried() else f"within {patience:g} s"
            self._terminal.say(f"{', '.join(late)} did not stop on {number.name} {waited}")

    def _is_hurried(self) -> bool:
        return len(self._signals) > self._heard

    def _tell(self) -> None:
        pids: dict[str, list[int]] = {}
        for seat in self._seats:
            if not seat.program.is_task:
                pids.setdefault(seat.program.role, []).extend([seat.child.pid] if seat.child else [])
        self._changed(pids, self._announced)


class _Watch:
    """Wakes the loop at signals and at a child's end, and tells when the parent is gone. Restores what it changed."""

    _STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def __init__(self, selector: selectors.BaseSelector, received: list[signal.Signals]) -> None:
        self._selector = selector
        self._received = received
        self._parent = os.getppid()
        # `nohup` ignores SIGHUP: whoever asked for that wants the stack to outlive the terminal and the script.
        self._stays = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN or self._parent == 1

    def parent_is_gone(self) -> bool:
        return not self._stays and os.getppid() != self._parent

    def __enter__(self) -> _Watch:
        self._inner, self._outer = os.pipe()
        for end in (self._inner, self._outer):
            os.set_blocking(end, False)
        self._selector.register(self._inner, selectors.EVENT_READ, None)
        self._old_fd = signal.set_wakeup_fd(self._outer, warn_on_full_buffer=False)
        self._old = {
            number: signal.signal(number, self._note)
            for number in self._STOPS
            if not (number is signal.SIGHUP and self._stays)
        }
        self._old[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, _only_wake)
        return self

    def _note(self, number: int, _frame: object) -> None:
        self._received.append(signal.Signals(number))

    def __exit__(self, *_: object) -> None:
        for number, handler in self._old.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._old_fd)
        self._selector.close()
        os.close(self._inner)
        os.close(self._outer)


def _only_wake(_number: int, _frame: object) -> None:
    """SIGCHLD writes to the wake-up pipe; the loop then looks who ended."""


def _drain(descriptor: int) -> None:
    try:
        os.read(descriptor, 4096)
    except BlockingIOError:
        return


def _how(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit {code}"


def _last_words(lines: list[str]) -> str:
    return readable(lines[-1]) if lines else "it said nothing"


def _why(lines: list[str]) -> str:
    found = cause(lines)
    shown = "\n".join(f"    {readable(line)}" for line in lines[-12:])
    return f"{found or 'Its last lines:'}\n{shown}" if shown else (found or "It said nothing.")

"""What runs in the background on this worker: begun by a tool run, kept while its turn goes on, ended with it.

A process belongs to the launcher of this worker and dies with it. What is known of it is in this memory, and where it
was in a row (shared/store/statements/backgrounds.py): another worker can say no more than that.
"""

from __future__ import annotations

import select
import threading
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

import structlog

from shared.boottime import boottime
from shared.sandbox.tiers import Way
from workers.sandbox import boxed
from workers.sandbox.boxed import Ended, Talk, Wanted
from workers.sandbox.ring import Ring
from workers.tools.context import ToolContext, ToolLost, ToolRefused, ToolStopped

MOST_OF_TURN = 4
MOST_HERE = 32
MOST_BEGUN = 100
"""Of one turn, one after another: how each ended is kept while the turn lives, be it asleep."""
MOST_ENDED_BYTES = 32 << 20
"""Of output that is kept of processes that are over, by all turns of this worker: a turn may begin one after another,
and sleep for days with what they wrote. Beyond it the output of those that ended first is gone, how they ended not."""
_LOOK_S = 0.2
_ASK_EVERY_S = 2.0
GoingOn = Callable[[list[str]], Mapping[str, bool]]
_BEGIN_S = 30.0
_log = structlog.stdlib.get_logger(__name__)


@dataclass(slots=True)
class Process:
    """One of them. `ended` once it is over, or `lost`: why nobody knows."""

    turn: str
    name: str
    ring: Ring = field(default_factory=Ring)
    stop: threading.Event = field(default_factory=threading.Event)
    over: threading.Event = field(default_factory=threading.Event)
    ended: Ended | None = None
    lost: str | None = None


class Backgrounds:
    """Owns the processes of this worker, each with a thread that takes what it writes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._of: dict[str, dict[str, Process]] = {}
        self._ended: list[Process] = []  # in the order of their ends, of turns that are known here
        self._watched = False
        self._claim: Callable[[], object] = _nothing

    def calls(self, claim: Callable[[], object]) -> None:
        """Called, in a thread of its own, when a turn of which something runs here waits to be claimed: a ring may go
        to any worker, and the claim leaves such a turn to this one for a while (statements/admission.py)."""
        self._claim = claim

    def begin(self, context: ToolContext, way: Way, wanted: Wanted, name: str) -> Process:
        """It runs once this returns. Raises as `boxed.run` does where it was not begun."""
        process = Process(context.turn, name)
        with self._lock:
            mine = self._of.setdefault(context.turn, {})
            if sum(not one.over.is_set() for one in mine.values()) >= MOST_OF_TURN:
                raise ToolRefused(f"{MOST_OF_TURN} processes run in the background already; end one of them first")
            if len(mine) >= MOST_BEGUN:
                raise ToolRefused(
                    f"this turn has begun {MOST_BEGUN} processes in the background; run it in the foreground"
                )
            if sum(not one.over.is_set() for of in self._of.values() for one in of.values()) >= MOST_HERE:
                raise ToolRefused("this worker runs as many background processes as it may; run it in the foreground")
            mine[name] = process
        stack = ExitStack()
        try:
            # Once it is begun, it is ended by its time, by its turn's end or by name: not with the run that began it.
            lasting = replace(context, deadline=boottime() + wanted.seconds + 2 * boxed.GRACE_S)
            until = boottime() + wanted.seconds + boxed.GRACE_S
            talk = stack.enter_context(boxed.begun(lasting, way, wanted, until, process.ring.take))
            _await_beginning(context, talk)
        except BaseException:
            stack.close()
            self._forget(process)
            raise
        threading.Thread(
            target=self._attend, args=(process, talk, stack), name=f"background-{name}", daemon=True
        ).start()
        return process

    def find(self, turn: str, name: str) -> Process | None:
        with self._lock:
            return self._of.get(turn, {}).get(name)

    def living(self, turn: str) -> bool:
        """Whether anything of this turn still runs here."""
        with self._lock:
            return any(not one.over.is_set() for one in self._of.get(turn, {}).values())

    def turns(self) -> list[str]:
        with self._lock:
            return list(self._of)

    def end_turn(self, turn: str, wait_s: float = 0.0) -> None:
        """Ends all that runs for the turn and forgets it."""
        with self._lock:
            gone = self._of.pop(turn, {})
            self._ended = [one for one in self._ended if one.turn != turn]
        for process in gone.values():
            process.stop.set()
        for process in gone.values():
            process.over.wait(wait_s)

    def keep(self, going_on: Collection[str]) -> None:
        """Ends what runs for any other turn."""
        for turn in self.turns():
            if turn not in going_on:
                self.end_turn(turn)

    def watched(self, going_on: GoingOn) -> None:
        """From now on, until this process ends, it is asked every two seconds which of the turns may go on here, and
        which of those wait to be claimed; what runs for others is ended. A parked turn is cancelled, or claimed by
        another worker, without a word to this one."""
        with self._lock:
            if not self._watched:
                self._watched = True
                threading.Thread(target=self._watch, args=(going_on,), name="backgrounds", daemon=True).start()

    def _watch(self, going_on: GoingOn) -> None:
        while True:
            time.sleep(_ASK_EVERY_S)
            turns = self.turns()
            if turns:
                try:
                    known = going_on(turns)
                    self.keep(known)
                    if any(known[turn] and self.living(turn) for turn in known):
                        threading.Thread(target=self._claim, name="claim-near", daemon=True).start()
                except Exception as error:  # noqa: BLE001 - the database may be away; the processes have their own time
                    _log.warning("background.unasked", error=type(error).__name__)

    def _forget(self, process: Process) -> None:
        with self._lock:
            mine = self._of.get(process.turn, {})
            mine.pop(process.name, None)
            if not mine:
                self._of.pop(process.turn, None)

    def _attend(self, process: Process, talk: Talk, stack: ExitStack) -> None:
        with stack:
            try:
                if _hear_out(process, talk):
                    process.ended = talk.conclude()
                else:
                    process.lost = "it was ended"
            except (ToolLost, ToolStopped, ToolRefused) as error:
                process.lost = error.message
            except Exception as error:  # noqa: BLE001 - a fault here must not leave a reader waiting for ever
                _log.error("background.failed", error=type(error).__name__)
                process.lost = "nobody knows how it ended: its watcher failed"
        process.over.set()
        self._make_room(process)

    def _make_room(self, ended: Process) -> None:
        with self._lock:
            if self._of.get(ended.turn, {}).get(ended.name) is not ended:
                return
            self._ended.append(ended)
            while sum(one.ring.size for one in self._ended) > MOST_ENDED_BYTES:
                self._ended.pop(0).ring.forget()


def _nothing() -> None:
    """Where no worker answers rings, nobody claims."""


BACKGROUNDS = Backgrounds()


def _await_beginning(context: ToolContext, talk: Talk) -> None:
    """Until it is told that it was begun, or why not."""
    poll = select.poll()
    poll.register(talk.socket, select.POLLIN)
    until = boottime() + _BEGIN_S
    while not talk.begun:
        if context.cancelled() or boottime() >= until:
            raise ToolStopped("stopped before it was begun")
        if poll.poll(_LOOK_S * 1000) and not talk.hear():
            if not talk.begun:
                talk.conclude()
                raise ToolStopped("it was not begun")
            return


def _hear_out(process: Process, talk: Talk) -> bool:
    """True once all was heard; false where it is to be ended."""
    poll = select.poll()
    poll.register(talk.socket, select.POLLIN)
    while not process.stop.is_set():
        if poll.poll(_LOOK_S * 1000) and not talk.hear():
            return True
    return False

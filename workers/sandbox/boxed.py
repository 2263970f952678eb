"""One run behind the wall, from the worker's side: begun by the launcher, its output taken as it comes, its end told.

What was not begun is said to be so. A run of which nobody knows how it ended may have done anything: it is lost.
"""

from __future__ import annotations

import json
import select
import socket
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Protocol

from shared.boottime import boottime
from shared.sandbox import hosts
from shared.sandbox.box import Bounds
from shared.sandbox.tiers import Tier, Way
from workers.sandbox.frames import Kind, Reader
from workers.sandbox.output import Output
from workers.tools import child
from workers.tools.context import ToolContext, ToolLost, ToolRefused, ToolStopped, check_going, cut_off
from workers.tools.places import Place, open_root

GRACE_S = 20.0
"""Beyond a run's own time: for what is looked at before and after it."""
MOST_OUTPUT = 64 << 20
"""Bytes after which a run that goes on writing is ended."""
_LOOK_EVERY_S = 0.05
_HALF = 20_000
_GONE = "outcome unknown: what ran this is gone; it may have happened, so check"


@dataclass(frozen=True, slots=True)
class Wanted:
    """`command` after the interpreter's name where `python`; `{fd}` in it is the number of the passed descriptor."""

    command: tuple[str, ...]
    seconds: float
    python: bool = False
    passed: tuple[int, ...] = ()
    bounds: Bounds = field(default_factory=Bounds)


@dataclass(frozen=True, slots=True)
class Ended:
    """`code` as a shell's, negative for a signal; `why`: what ended it before its time (time, output, memory, disk,
    processes). `taken_back`: files that steer later work and were changed or made; `differs`: such as stay changed."""

    tier: Tier
    code: int
    why: str | None
    seconds: float
    taken_back: tuple[str, ...]
    differs: tuple[str, ...]


@dataclass(slots=True)
class Talk:
    """What came of a run so far."""

    socket: socket.socket
    name: bytes
    tier: Tier
    output: Callable[[bytes], None]
    reader: Reader = field(default_factory=Reader)
    begun: bool = False
    ended: dict[str, Any] | None = None

    def hear(self) -> bool:
        """Takes what is there; false once nothing more will come. Blocks where nothing is there yet."""
        try:
            piece = self.socket.recv(65_536)
        except ConnectionResetError:  # the end, as it is told where the request was not read
            piece = b""
        if not piece:
            return False
        for kind, data in self.reader.feed(piece):
            match kind:
                case Kind.BEGUN:
                    self.begun = True
                case Kind.OUTPUT:
                    self.output(data)
                case Kind.END:
                    self.ended = json.loads(data)
        return True

    def conclude(self) -> Ended:
        """Once `hear` was false. Raises ToolLost, ToolRefused or ToolStopped where the run did not come to its end."""
        try:
            child.last_word(self.reader.rest, self.name)
        except child.NotBegun as late:
            raise cut_off() from late
        except child.LauncherGone as gone:
            raise ToolLost(_GONE) from gone
        told = self.ended
        if told is None:
            if self.begun:
                raise ToolLost(_GONE)
            raise ToolStopped("the sandbox could not be begun, so nothing was run; this is a fault of this machine")
        if "refused" in told:
            raise ToolRefused(str(told["refused"]))
        if told.get("late"):
            raise cut_off()
        back, differs = told.get("taken_back", ()), told.get("differs", ())
        return Ended(self.tier, int(told["code"]), told["why"], float(told["seconds"]), tuple(back), tuple(differs))


def run(context: ToolContext, way: Way, wanted: Wanted, serve: Served | None = None) -> tuple[Ended, Output]:
    """Runs it to its end. While it runs, what comes on `serve` is answered. Raises `ToolStopped`, `ToolRefused` (it was
    not begun, and why) and `ToolLost`."""
    output = Output(_HALF)
    until = min(boottime() + wanted.seconds + GRACE_S, context.deadline)
    with begun(context, way, wanted, until, output.take) as talk:
        _hear_out(context, talk, until, serve)
        return talk.conclude(), output


class Served(Protocol):
    """The other end of a descriptor that a run was given: what comes there, and what is done about it."""

    @property
    def fd(self) -> int: ...

    def answer(self) -> bool:
        """Takes one request and answers it; false where nothing more will come."""
        ...


def _hear_out(context: ToolContext, talk: Talk, until: float, serve: Served | None) -> None:
    poll = select.poll()
    poll.register(talk.socket, select.POLLIN)
    if serve is not None:
        poll.register(serve.fd, select.POLLIN)
    while True:
        check_going(context)
        if boottime() >= until:
            raise ToolLost(_GONE)
        for fd, _ in poll.poll(_LOOK_EVERY_S * 1000):
            if serve is not None and fd == serve.fd:
                if not serve.answer():
                    poll.unregister(fd)
            elif not talk.hear():
                return


@contextmanager
def begun(
    context: ToolContext, way: Way, wanted: Wanted, until: float, output: Callable[[bytes], None]
) -> Generator[Talk]:
    """The run is begun; it is ended with the block, if nothing else has ended it."""
    with _roots(context) as roots:
        request = {
            "job": "box",
            "way": way.row(),
            "command": list(wanted.command),
            "python": wanted.python,
            "attached": len(roots) > 1,
            "seconds": wanted.seconds,
            "most": MOST_OUTPUT,
            "reach": _reach(context),
            "bounds": asdict(_bounds(context, wanted)),
        }
        ours, name = child.begin(context, request, [*roots, *wanted.passed], until)
    with ours:
        yield Talk(ours, name, way.tier, output)


def _bounds(context: ToolContext, wanted: Wanted) -> Bounds:
    """With the setting's word on the disk, for a run of a session."""
    if context.store is None:
        return wanted.bounds
    disk = context.store.settings.sandbox_disk_mb << 20
    return replace(wanted.bounds, disk_bytes=min(disk, wanted.bounds.disk_bytes))


def _reach(context: ToolContext) -> list[str]:
    """The settings that say where the network leads; nowhere for a run that belongs to no session."""
    store = context.store
    if store is None:
        return ["", ""]
    return [store.settings.web_open_hosts, hosts.of_profile(store.settings.sandbox_hosts, store.profile)]


@contextmanager
def _roots(context: ToolContext) -> Generator[Sequence[int]]:
    with open_root(context, Place(attached=False, parts=())) as workspace:
        if context.attached is None:
            yield (workspace,)
            return
        with open_root(context, Place(attached=True, parts=())) as attached:
            yield (workspace, attached)

"""Owns what a chat waits for: typed lines, Ctrl-C, and what its turn does, all in one queue and in order.

Ctrl-C is a value in that queue, so it never tears a request apart; a third one that nobody takes ends the process.
"""

from __future__ import annotations

import os
import queue
import signal
import threading
import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass

import httpx

from api.cli import events
from api.cli.client import Client
from api.cli.events import Seen
from api.cli.exits import Stop


@dataclass(frozen=True, slots=True)
class Line:
    text: str
    at: float  # monotonic: when it was read


@dataclass(frozen=True, slots=True)
class NoMoreLines:
    pass


@dataclass(frozen=True, slots=True)
class Interrupted:
    pass


@dataclass(frozen=True, slots=True)
class Progress:
    turn: str
    seen: Seen


@dataclass(frozen=True, slots=True)
class Remark:
    text: str


@dataclass(frozen=True, slots=True)
class Settled:
    """What was asked of the transcript is done, or will not be."""

    told: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Ended:
    """The turn's events are over; `failure` says why where they broke off for good."""

    turn: str
    failure: Stop | None


Happening = Line | NoMoreLines | Interrupted | Progress | Remark | Settled | Ended
Queue = queue.SimpleQueue[Happening]  # its `put` is safe inside a signal handler


def read_stdin(into: Queue) -> None:
    """Lines of stdin from a thread of its own, until it ends."""
    threading.Thread(target=_read, args=(into,), daemon=True, name="stdin").start()


def _read(into: Queue) -> None:
    for line in cut(_chunks()):
        into.put(Line(line, time.monotonic()))
    into.put(NoMoreLines())


def _chunks() -> Iterable[bytes]:
    while True:
        try:
            # Not `sys.stdin`: a daemon thread inside its lock would abort the interpreter at exit.
            piece = os.read(0, 65_536)
        except OSError:
            return
        if not piece:
            return
        yield piece


def cut(chunks: Iterable[bytes]) -> Generator[str]:
    """Lines of text; one that ends with a backslash goes on in the next."""
    rest, begun = b"", ""
    for piece in chunks:
        *whole, rest = (rest + piece).split(b"\n")
        for raw in whole:
            line = begun + raw.decode("utf-8", "replace").rstrip("\r")
            if line.endswith("\\"):
                begun = line[:-1] + "\n"
                continue
            begun = ""
            yield line
    last = begun + rest.decode("utf-8", "replace")
    if last:
        yield last


def follow(client: Client, turn: str, into: Queue) -> None:
    """The turn's events from a thread of their own."""

    def run() -> None:
        failure: Stop | None = None
        try:
            for seen in events.follow(client, turn, lost=lambda why: into.put(Remark(f"… connection lost ({why})"))):
                into.put(Progress(turn, seen))
        except Stop as stop:
            failure = stop
        except httpx.HTTPError as error:
            failure = Stop("events_lost", f"the event stream broke: {error}")
        into.put(Ended(turn, failure))

    threading.Thread(target=run, daemon=True, name="events").start()


@contextmanager
def interrupts(into: Queue) -> Generator[None]:
    """While inside, Ctrl-C is a happening."""
    pending = 0

    def note(_number: int, _frame: object) -> None:
        nonlocal pending
        pending += 1
        if pending > 2 and not into.empty():
            raise KeyboardInterrupt
        into.put(Interrupted())

    before = signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)

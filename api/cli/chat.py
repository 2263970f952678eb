"""Owns `chat`: a line typed while the agent works steers it, and Ctrl-C costs a turn, never the session.

A line read before the turn was accepted cannot mean that turn: it waits and becomes the next one. So a script of
piped lines is a conversation, whatever the timing.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any, assert_never

from api.cli import asked as of_transcript
from api.cli import lines, screen, turns, waiting
from api.cli.client import Client
from api.cli.deciding import Deciding
from api.cli.exits import Exit, Stop
from api.cli.lines import Ended, Interrupted, Line, NoMoreLines, Progress, Queue, Remark, Settled
from api.cli.live import Live

HELP = (
    "/cancel the turn · /approve · /deny WHY · /rewind N turns · /restore them · /compact · /new session · /quit"
    " · '//' sends a slash"
    " · a line ending in \\ goes on in the next"
)


@dataclass(slots=True)
class _Chat:
    client: Client
    asked: argparse.Namespace
    session: str | None
    inbox: Queue = field(default_factory=Queue)
    waiting: deque[Line] = field(default_factory=deque[Line])
    live: Live = field(default_factory=Live)
    deciding: Deciding = field(default_factory=Deciding)
    turn: str | None = None
    accepted_at: float = 0.0
    cancelling: bool = False
    asking: int = 0  # what was asked of the transcript and is not done yet
    leaving: bool = False  # when the turn and the waiting lines are through
    gone: bool = False
    outcome: Exit = Exit.DONE


def chat(client: Client, asked: argparse.Namespace) -> Exit:
    talk = _Chat(client, asked, asked.session)
    if talk.session is not None:
        _greet(talk, client.get(f"/v1/sessions/{talk.session}"))
    elif _is_person():
        screen.note(f"a new session begins with your first line · {HELP}")
    with lines.interrupts(talk.inbox):
        lines.read_stdin(talk.inbox)
        _prompt(talk)
        while not talk.gone:
            _handle(talk)
    _part(talk)
    return Exit.DONE if _is_person() else talk.outcome


def _is_person() -> bool:
    return sys.stdin.isatty()


def _handle(talk: _Chat) -> None:
    happening = talk.inbox.get()
    match happening:
        case Line() as line:
            if talk.turn is not None and line.at <= talk.accepted_at:
                talk.waiting.append(line)
            else:
                _take(talk, line)
        case NoMoreLines():
            talk.leaving = True
        case Interrupted():
            _interrupt(talk)
        case Progress(turn, seen):
            if turn == talk.turn:
                _show(talk, seen)
        case Remark(text):
            talk.live.note(text)
        case Settled(told):
            talk.asking -= 1
            for text in told:
                talk.live.note(text)
        case Ended(turn, failure):
            if turn == talk.turn:
                _ended(talk, failure)
        case _:
            assert_never(happening)
    while talk.turn is None and talk.waiting and not talk.gone:
        _take(talk, talk.waiting.popleft())
    if talk.leaving and talk.turn is None and not talk.asking:
        talk.gone = True
    elif talk.leaving and talk.deciding.for_person:  # nobody is left who could answer it here
        talk.gone, talk.outcome = True, Exit.PERSON
    elif talk.leaving and talk.deciding.for_money:
        talk.gone, talk.outcome = True, Exit.MONEY


def _show(talk: _Chat, seen: Any) -> None:
    if talk.asked.json:
        screen.as_line({"id": seen.event.id, "event": seen.event.kind, "data": seen.event.data})
    else:
        talk.live.show(seen)
    if talk.turn is None:
        return
    if seen.event.kind in {"turn.parked", "snapshot"}:
        try:
            talk.deciding.parked(talk.client, talk.turn, talk.live)
        except Stop as stop:
            _failed(talk, stop)
    elif seen.event.kind == "turn.started":
        talk.deciding.clear()


def _take(talk: _Chat, line: Line) -> None:
    """One line of the person: a decision, a command, steering, or the next turn."""
    text = line.text.strip()
    try:
        if talk.deciding.take(talk.client, text, line.at, talk.live):
            return
        match text:
            case "":
                pass
            case "/quit" | "/exit":
                talk.gone = True
            case "/cancel":
                _cancel(talk)
            case "/new" if talk.turn is not None:
                screen.note("a turn is working: /cancel it first, or wait")
            case "/new":
                talk.session = None
                screen.note("a new session begins with your next line")
            case "/help":
                screen.note(HELP)
            case "/compact" | "/restore":
                _ask(talk, text[1:], {})
            case _ if text.split()[0] == "/rewind":
                _rewind(talk, text.removeprefix("/rewind").strip())
            case _ if text.startswith("/") and not text.startswith("//"):
                screen.note(f"{text.split()[0]} is not a command · {HELP}")
            case _:
                _say(talk, text[1:] if text.startswith("//") else text)
                return
    except Stop as stop:
        _failed(talk, stop)
    _prompt(talk)


def _rewind(talk: _Chat, wanted: str) -> None:
    if talk.session is None:
        screen.note("nothing has been said yet")
        return
    turn, lines_ = of_transcript.of_numbers(talk.client, talk.session, wanted)
    for line in lines_:
        screen.note(line)
    if turn is not None:
        _ask(talk, "rewind", {"to_turn": turn})


def _ask(talk: _Chat, what: str, body: dict[str, object]) -> None:
    """Ask, and tell what came of it when it is done: a line typed meanwhile becomes a turn behind it."""
    if talk.session is None:
        screen.note("nothing has been said yet")
        return
    client, inbox, session = talk.client, talk.inbox, talk.session
    taken = of_transcript.ask(client, session, what, body)
    talk.asking += 1

    def follow() -> None:
        try:
            request = of_transcript.wait(client, session, taken)
            if request["status"] not in ("done", "skipped"):
                raise of_transcript.failed(request)
            inbox.put(Settled(tuple(of_transcript.told(session, taken, request))))
        except Stop as stop:
            inbox.put(Settled((screen.failure(stop.code, stop.message),)))

    threading.Thread(target=follow, daemon=True, name=what).start()


def _say(talk: _Chat, text: str) -> None:
    if talk.turn is not None:
        _steer(talk, talk.turn, text)
        return
    if talk.session is None:
        talk.session = turns.open_session(talk.client, talk.asked)
        screen.note(f"session {talk.session}")
    accepted = talk.client.post(f"/v1/sessions/{talk.session}/turns", {"input": text, "on_busy": "queue"})
    _begin(talk, str(accepted["turn"]["id"]))


def _begin(talk: _Chat, turn: str) -> None:
    talk.turn, talk.accepted_at, talk.cancelling = turn, time.monotonic(), False
    lines.follow(talk.client, turn, talk.inbox)


def _steer(talk: _Chat, turn: str, text: str) -> None:
    """The turn reads it, or, where it ended a moment ago, it becomes the next turn."""
    try:
        said: dict[str, Any] = talk.client.post(f"/v1/turns/{turn}/steer", {"input": text})
    except Stop as stop:
        if stop.status != 409:
            raise
        escaped = f"/{text}" if text.startswith("/") else text
        talk.waiting.append(Line(escaped, time.monotonic()))  # the news of its end is on the way to us
        return
    if said.get("how") == "queued":
        talk.live.note(f"» this turn is not yours to steer: that waits as a turn of your own, {said['turn']['id']}")
        return
    if talk.deciding.for_person and not talk.deciding.for_itself:
        talk.live.note("» it reads that when its children are through; what they ask is still open")
        return
    answered = talk.deciding.for_person
    talk.deciding.clear()
    talk.live.note("» that is the answer; it goes on" if answered else "» it stops and reads that")


def _interrupt(talk: _Chat) -> None:
    if talk.turn is None or talk.cancelling:
        talk.gone = True
    else:
        _cancel(talk)


def _cancel(talk: _Chat) -> None:
    if talk.turn is None:
        screen.note("nothing is working")
        return
    turn, client, inbox = talk.turn, talk.client, talk.inbox
    talk.cancelling = True
    talk.live.note("cancelling; the session stays · Ctrl-C again leaves")

    def ask() -> None:  # in a thread, so that a slow network does not hold up the second Ctrl-C
        try:
            client.post(f"/v1/turns/{turn}/cancel")
        except Stop as stop:
            if stop.status != 409:  # 409: it ended by itself
                inbox.put(Remark(screen.failure(stop.code, stop.message)))

    threading.Thread(target=ask, daemon=True, name="cancel").start()


def _ended(talk: _Chat, failure: Stop | None) -> None:
    turn = talk.turn
    talk.turn = None
    talk.deciding.clear()
    talk.live.end_line()
    try:
        if failure is not None:
            raise failure
        row: dict[str, Any] = talk.client.get(f"/v1/turns/{turn}")
        outcome = turns.conclude(row, tell=not talk.asked.json)
        talk.outcome = outcome if outcome is not Exit.DONE else talk.outcome
    except Stop as stop:
        _failed(talk, stop)
    _prompt(talk)


def _failed(talk: _Chat, stop: Stop) -> None:
    talk.outcome = stop.exit
    print(screen.failure(stop.code, stop.message), file=sys.stderr, flush=True)


def _greet(talk: _Chat, session: dict[str, Any]) -> None:
    screen.note(f"{session.get('title') or 'untitled'} · {session.get('model')} · session {talk.session}")


def _prompt(talk: _Chat) -> None:
    if _is_person() and screen.is_rich() and talk.turn is None and not talk.gone:
        screen.write("> ")


def _part(talk: _Chat) -> None:
    talk.live.end_line()
    if talk.turn is not None and (talk.deciding.for_person or talk.deciding.for_money):
        _tell_wait(talk, talk.turn)
    elif talk.turn is not None and not talk.cancelling:
        screen.note(f"the turn goes on without you: nightshift watch {talk.turn}")
    if talk.session is not None and _is_person():
        screen.note(f"nightshift chat --session {talk.session} goes on from here")


def _tell_wait(talk: _Chat, turn: str) -> None:
    try:
        row: dict[str, Any] = talk.client.get(f"/v1/turns/{turn}")
    except Stop as stop:
        _failed(talk, stop)
        return
    for line in waiting.told(row):
        screen.note(line)

"""Owns the entry of the command line: which command runs. Whatever goes wrong ends as a sentence and an exit code."""

from __future__ import annotations

import argparse
import os
import signal
import sys

from api.cli import screen
from api.cli.arguments import parser
from api.cli.exits import Exit, Stop


def main(argv: list[str]) -> int:
    """Runs one command. Never raises."""
    screen.prepare()
    try:
        asked = parser().parse_args(argv)
    except SystemExit as end:  # argparse has said why
        return int(end.code or 0)
    try:
        return int(_run(asked))
    except Stop as stop:
        print(screen.failure(stop.code, stop.message), file=sys.stderr)
        return stop.exit
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 128 + signal.SIGINT
    except BrokenPipeError:
        # Whoever read us has seen enough (`nightshift sessions | head`); the flush at exit must not complain again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE


def _run(asked: argparse.Namespace) -> Exit | int:
    if asked.command == "doctor":  # it looks for itself what is there, and says what is not
        from api.cli.doctor.run import doctor

        return doctor(asked)
    if asked.command is None:
        parser().print_help()
        return Exit.WRONG_USE
    from api.cli.client import Client
    from api.cli.connection import find

    with Client(find()) as client:
        return _with_client(asked, client)


def _with_client(asked: argparse.Namespace, client: object) -> Exit:
    from api.cli import approvals, chat, gate, jobs, ledger, memory, people, search, sessions, stops, turns
    from api.cli import asked as of_transcript
    from api.cli.client import Client

    assert isinstance(client, Client)
    match str(asked.command):
        case "chat":
            return chat.chat(client, asked)
        case "send":
            return turns.send(client, asked)
        case "watch":
            return turns.watch(client, asked)
        case "cancel":
            return turns.cancel(client, asked)
        case "steer":
            return turns.steer(client, asked)
        case "cap":
            return turns.cap(client, asked)
        case "sessions":
            return sessions.sessions(client, asked)
        case "show":
            return sessions.show(client, asked)
        case "search":
            return search.search(client, asked)
        case "rewind":
            return of_transcript.rewind(client, asked)
        case "restore":
            return of_transcript.restore(client, asked)
        case "compact":
            return of_transcript.compact(client, asked)
        case "approvals":
            return approvals.approvals(client, asked)
        case "approve" | "deny" as decision:
            return approvals.approve(client, asked) if decision == "approve" else approvals.deny(client, asked)
        case "gate" | "grants" | "bypass":
            return gate.run(client, asked)
        case "jobs":
            return jobs.run(client, asked)
        case "stop":
            return stops.stop(client, asked)
        case "stops":
            return stops.stops(client, asked)
        case "resume":
            return stops.resume(client, asked)
        case "memory":
            return memory.memory(client, asked)
        case "profile":
            return memory.profile(client, asked)
        case "people":
            return people.people(client, asked)
        case "tokens":
            return people.tokens(client, asked)
        case "ledger":
            return ledger.ledger(client, asked)
        case "replay":
            return ledger.replay(client, asked)
        case other:
            raise Stop("unknown_command", f"'{other}' is not a command", Exit.WRONG_USE)

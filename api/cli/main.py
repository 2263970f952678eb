"""Owns the entry of the command line: which command runs. Whatever goes wrong ends as a sentence and an exit code."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable

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
    from api.cli import (
        approvals,
        artifact,
        budgets,
        chat,
        gate,
        jobs,
        ledger,
        memory,
        people,
        search,
        sessions,
        stops,
        switching,
        turns,
    )
    from api.cli import asked as of_transcript
    from api.cli.client import Client

    assert isinstance(client, Client)
    commands: dict[str, Callable[[Client, argparse.Namespace], Exit]] = {
        "chat": chat.chat,
        "send": turns.send,
        "watch": turns.watch,
        "cancel": turns.cancel,
        "steer": turns.steer,
        "cap": turns.cap,
        "warm": turns.warm,
        "model": switching.model,
        "title": turns.title,
        "sessions": sessions.sessions,
        "show": sessions.show,
        "search": search.search,
        "artifact": artifact.artifact,
        "rewind": of_transcript.rewind,
        "restore": of_transcript.restore,
        "compact": of_transcript.compact,
        "approvals": approvals.approvals,
        "approve": approvals.approve,
        "deny": approvals.deny,
        "gate": gate.run,
        "grants": gate.run,
        "bypass": gate.run,
        "jobs": jobs.run,
        "stop": stops.stop,
        "stops": stops.stops,
        "resume": stops.resume,
        "memory": memory.memory,
        "profile": memory.profile,
        "people": people.people,
        "tokens": people.tokens,
        "ledger": ledger.ledger,
        "budgets": budgets.budgets,
        "replay": ledger.replay,
    }
    command = commands.get(str(asked.command))
    if command is None:
        raise Stop("unknown_command", f"'{asked.command}' is not a command", Exit.WRONG_USE)
    return command(client, asked)

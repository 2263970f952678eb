"""Runs the demo: stack, job, brief, bill, stop. A failure is told with the last lines of the logs, and ends with 1."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from pathlib import Path

from api.cli import screen
from api.cli.client import Client
from api.cli.connection import Target
from api.cli.exits import Stop
from deploy.demo import job, report
from deploy.demo.progress import Progress, say
from deploy.demo.stack import ROOT, Stack, last_words, running
from deploy.local.explain import StackError
from shared.errors import SettingsError
from shared.settings import Settings, load


def main(argv: list[str]) -> int:
    asked = _parse(argv)
    screen.prepare()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # asked to end, we stop our stack first
    try:
        settings = load()
        folder = _folder(asked.folder)
        with running(settings.home, keep=asked.keep) as stack:
            return _on(stack, settings, folder, asked)
    except SettingsError as error:
        say(f"{error.code}: {error.message}")
        return 78
    except StackError as error:
        say(f"The demo failed: {error}")
        return 1
    except KeyboardInterrupt:
        say("interrupted; the stack is stopped")
        return 130


def _parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="./dev demo", description="One overnight brief on real input, from the job that comes due to its delivery."
    )
    parser.add_argument(
        "--folder", type=Path, default=ROOT, metavar="PATH", help="the input (default: this repository)"
    )
    parser.add_argument("--keep", action="store_true", help="leave the stack up")
    parser.add_argument(
        "--json", action="store_true", help="the result as JSON on stdout; progress goes to stderr anyway"
    )
    return parser.parse_args(argv)


def _folder(path: Path) -> Path:
    folder = path.expanduser().absolute()
    if not folder.is_dir():
        raise StackError(f"{folder} is not a folder: name one with mail, calendars, notes, tables or a repository.")
    return folder.resolve()


def _lost(why: str) -> None:
    say(f"    … connection lost ({why}); coming back")


def _on(stack: Stack, settings: Settings, folder: Path, asked: argparse.Namespace) -> int:
    began = time.monotonic()
    where = f"up after {stack.started_s:.1f} s" if stack.is_ours else "already running"
    say(f"The stack is {where}: {stack.facts['url']}")
    if stack.is_rehearsal:
        say("Rehearsal: a local stand-in answers over HTTP; nothing is written by a model and nothing is spent.")
    progress = Progress()
    try:
        with Client(Target(str(stack.facts["url"]), str(stack.facts["token"]), "stack.json")) as client:
            made = job.make(client, folder, zone=settings.team_zone)
            say(f"Job '{made['name']}' is due now, on {folder}, read-only")
            try:
                done = job.run(client, made, show=progress.show, show_child=progress.show_child, lost=_lost)
            finally:
                job.put_away(client, made)
    except Stop as stop:
        say(f"\nThe demo failed. {stop.code}: {stop.message}\nThe last lines of the logs in {stack.logs}:")
        for line in last_words(stack.logs):
            say(f"  {line}")
        return 1
    seconds = time.monotonic() - began + stack.started_s
    if asked.json:
        screen.as_json(report.as_json(stack, done, progress, seconds))
    else:
        report.show(stack, done, progress, seconds, keep=asked.keep)
    sys.stdout.flush()
    return 0

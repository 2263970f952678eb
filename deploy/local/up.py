"""Owns `up`: one stack in the foreground, `stack.json` while it runs, and one sentence when it cannot run."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

from deploy.local.explain import StackError
from deploy.local.home import Home, locked, open_home, write_private
from deploy.local.logs import Terminal
from deploy.local.stack import Fleet, Stack, plan
from deploy.local.supervisor import Supervisor
from shared.errors import WRONG_SETTINGS, SettingsError
from shared.settings import load


def main(argv: list[str], change: Callable[[Stack], None] | None = None) -> int:
    """`change` may alter what is planned before it starts: a drill has workers of its own."""
    asked = _parse(argv)
    fleet = Fleet(asked.workers, asked.concurrency, asked.schedulers, asked.beats, asked.apis)
    try:
        settings = load()
        home = open_home(settings.home)
        with locked(home):
            planned = plan(home, settings, fleet, pg_bin=asked.pg_bin)
            if change is not None:
                change(planned)
            return _run(planned, as_json=asked.json)
    except SettingsError as error:
        print(error.message, file=sys.stderr)
        return WRONG_SETTINGS
    except StackError as error:
        print(error, file=sys.stderr)
        return 1


def _parse(argv: list[str]) -> argparse.Namespace:
    default = Fleet()
    parser = argparse.ArgumentParser(prog="./dev up", description="The whole stack in the foreground; Ctrl-C stops it.")
    parser.add_argument("--workers", type=_count, default=default.workers, help="worker processes (%(default)s)")
    parser.add_argument("--concurrency", type=_count, default=default.concurrency, help="slots a worker (%(default)s)")
    parser.add_argument("--schedulers", type=_count, default=default.schedulers)
    parser.add_argument("--beats", type=_count, default=default.beats)
    parser.add_argument("--apis", type=_count, default=default.apis)
    parser.add_argument("--json", action="store_true", help="print stack.json once everything is ready")
    parser.add_argument("--pg-bin", type=Path, help="folder of another Postgres' programs")
    return parser.parse_args(argv)


def _count(text: str) -> int:
    number = int(text)
    if not 0 <= number <= 256:
        raise argparse.ArgumentTypeError("between 0 and 256")
    return number


def _run(stack: Stack, *, as_json: bool) -> int:
    terminal = Terminal()
    started = time.monotonic()
    announced = False

    def changed(pids: dict[str, list[int]], ready: bool) -> None:
        nonlocal announced
        if not ready:
            return
        facts = stack.facts(pids)
        _keep(stack.home, facts, terminal)
        if not announced:
            announced = True
            print(json.dumps(facts) if as_json else _greeting(stack, time.monotonic() - started), flush=True)

    stack.home.stack_file.unlink(missing_ok=True)
    supervisor = Supervisor(
        stack.programs, logs=stack.home.logs, hold=stack.home.hold, terminal=terminal, changed=changed
    )
    terminal.say(f"starting in {stack.home.root} ({_servers(stack)})")
    try:
        return supervisor.run()
    finally:
        stack.home.stack_file.unlink(missing_ok=True)


def _keep(home: Home, facts: dict[str, object], terminal: Terminal) -> None:
    """A full disk makes the file stale, and that is said; it is no reason to stop what runs."""
    try:
        write_private(home.stack_file, json.dumps(facts, indent=2) + "\n")
    except StackError as error:
        terminal.say(str(error))


def _servers(stack: Stack) -> str:
    told = (f"{name} {facts.get('version', '')} from {facts['kind']}" for name, facts in stack.servers.items())
    return ", ".join(" ".join(part.split()) for part in told)


def _greeting(stack: Stack, seconds: float) -> str:
    model = (
        "rehearsal: a local stand-in answers, nothing here was written by a model"
        if stack.is_rehearsal
        else f"{stack.settings.model} at {stack.provider_url or 'its provider'}"
    )
    return "\n".join(
        (
            f"Nightshift is up after {seconds:.1f} s: {stack.url}/docs",
            f"  model   {model}",
            f"  token   in {stack.home.stack_file} (./dev nightshift … uses it by itself)",
            f"  logs    {stack.home.logs}",
            "  stop    Ctrl-C, or ./dev down",
        )
    )

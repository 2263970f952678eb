"""Owns `./dev logs`: the last lines of each process of this home's stack, and with --follow those to come."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from deploy.local.logs import Terminal, readable
from deploy.local.servers import tail
from shared.errors import SettingsError
from shared.settings import load


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="./dev logs")
    parser.add_argument("role", nargs="*", help="api, worker, postgres …; all of them by default")
    parser.add_argument("-f", "--follow", action="store_true", help="until Ctrl-C")
    parser.add_argument("-n", "--lines", type=int, default=20, help="how many of each (%(default)s)")
    asked = parser.parse_args(argv)
    try:
        folder = load().home.expanduser().absolute() / "logs"
    except SettingsError as error:
        print(error.message, file=sys.stderr)
        return 1
    roles: list[str] = asked.role
    files = [file for file in sorted(folder.glob("*.log")) if not roles or _role(file) in roles or file.stem in roles]
    if not files:
        print(f"No log of {', '.join(roles) or 'any process'} in {folder}.", file=sys.stderr)
        return 1
    terminal = Terminal(sys.stdout)
    sizes = {file: file.stat().st_size for file in files}
    for file in files:
        for line in tail(file, asked.lines):
            terminal.line(file.stem, readable(line))
    try:
        while asked.follow:
            time.sleep(0.25)
            for file in files:
                sizes[file] = _show_more(terminal, file, sizes[file])
    except KeyboardInterrupt:
        return 0
    return 0


def _role(file: Path) -> str:
    name, _, number = file.stem.rpartition("-")
    return name if number.isdigit() else file.stem


def _show_more(terminal: Terminal, file: Path, seen: int) -> int:
    """Prints the whole lines after `seen`; a file that is shorter now has been turned over, and is read afresh."""
    try:
        with file.open("rb") as opened:
            opened.seek(0, 2)
            opened.seek(seen if opened.tell() >= seen else 0)
            start = opened.tell()
            piece = opened.read()
    except OSError:
        return seen
    whole = piece[: piece.rfind(b"\n") + 1]
    for line in whole.decode("utf-8", "replace").splitlines():
        terminal.line(file.stem, readable(line))
    return start + len(whole)

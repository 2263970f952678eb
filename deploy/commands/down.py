"""Owns `./dev down`: the stack of this home has stopped when it returns, however its supervisor ended."""

from __future__ import annotations

import signal
import sys

from deploy.local import postgres, processes, valkey
from deploy.local.explain import StackError
from deploy.local.home import Home, lock_holder, locked, open_home
from shared.errors import SettingsError
from shared.settings import load

PATIENCE = 90.0


def main(argv: list[str]) -> int:
    if argv:
        print("./dev down takes no arguments: NIGHTSHIFT_HOME says which stack", file=sys.stderr)
        return 2
    try:
        root = load().home.expanduser().absolute()
        if not root.is_dir():
            print(f"No stack has ever run in {root}.")
            return 0
        return _down(open_home(root))
    except (SettingsError, StackError) as error:
        print(error, file=sys.stderr)
        return 1


def _down(home: Home) -> int:
    holder = lock_holder(home.root)
    if holder is None:
        with locked(home):
            left = _clear(home)
        print(f"Ended what a killed stack had left in {home.root}." if left else f"No stack runs in {home.root}.")
        return 0
    processes.send(holder, signal.SIGTERM)
    if processes.wait_until(lambda: lock_holder(home.root) is None, PATIENCE, 0.05):
        print(f"The stack in {home.root} has stopped.")
        return 0
    raise StackError(f"The stack (pid {holder}) is still stopping after {PATIENCE:.0f} s: look at ./dev logs.")


def _clear(home: Home) -> bool:
    """What a supervisor that was killed could not end: its servers are on their way out, and are waited for."""
    left = processes.inhabitants(home.postgres) + processes.inhabitants(home.valkey)
    if home.postgres.is_dir():
        postgres.clear(home.postgres, home.sockets)
    if home.valkey.is_dir():
        valkey.clear(home)
    home.stack_file.unlink(missing_ok=True)
    return bool(left)

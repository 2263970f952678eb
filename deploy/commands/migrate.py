"""Owns `./dev migrate`: the database of this home is at the code's revision when it returns."""

from __future__ import annotations

import sys

from deploy.commands.database import database
from deploy.local.explain import StackError
from shared.errors import NightshiftError


def main(argv: list[str]) -> int:
    from shared.store.migrate import upgrade

    if argv:
        print("./dev migrate takes no arguments: it goes to this code's revision", file=sys.stderr)
        return 2
    try:
        with database() as url:
            print(f"database at revision {upgrade(url)}")
    except (NightshiftError, StackError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0

"""Owns how a command reaches this home's database: the URL given, the running stack's, or one started meanwhile."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Generator
from pathlib import Path

from deploy.local.explain import StackError
from deploy.local.home import lock_holder, locked, open_home
from deploy.local.servers import start_postgres, stop
from shared.settings import load


@contextlib.contextmanager
def database() -> Generator[str]:
    """A direct URL that answers for the length of the `with`."""
    settings = load()
    if settings.direct_url:
        yield settings.direct_url
        return
    home = open_home(settings.home)
    if lock_holder(home.root) is not None:
        yield _of_running(home.stack_file)
        return
    with locked(home):
        postgres = start_postgres(home)
        try:
            yield postgres.direct_url
        finally:
            stop(postgres.running)


def _of_running(stack_file: Path) -> str:
    try:
        return str(json.loads(stack_file.read_text("utf-8"))["database_direct_url"])
    except (OSError, ValueError, KeyError) as error:
        raise StackError(f"A stack is starting or stopping in {stack_file.parent}: try again in a moment.") from error

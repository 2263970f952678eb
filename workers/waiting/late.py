"""Children that were not ready when their parent's patience was over: they are ended, not left to work for nobody."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from shared.store import cancel
from shared.store.pool import Connection
from workers.ports import Ports

TOO_LATE = "it was not ready in time and was stopped"


def stop(ports: Ports, turns: Iterable[UUID]) -> frozenset[UUID]:
    """Cancel each with what hangs below it, a transaction a turn; a running one is ended by its holder within two
    seconds. Returns those of `turns` that it was not too late for. Where this process dies before the parent goes on,
    the next holder does the same again."""
    return frozenset(turn for turn in turns if _stop(ports, turn))


def _stop(ports: Ports, turn: UUID) -> bool:
    if not _one(ports, turn):
        return False
    for each in ports.database.read(lambda c: cancel.below(c, turn)):
        _one(ports, each)
    return True


def _one(ports: Ports, turn: UUID) -> bool:
    def work(connection: Connection) -> bool:
        with connection.transaction():
            cancel.cancel(connection, turn, None)
        return True

    try:
        return ports.database.read(work)
    except cancel.TurnOver:
        return False

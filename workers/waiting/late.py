"""Children that were not ready when their parent's patience was over are ended, not left to work for nobody; and who
watches the parent is told of each child that ends."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from shared import telling
from shared.store import cancel
from shared.store.pool import Connection
from shared.values import TurnStatus
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
    def work(connection: Connection) -> cancel.Cancelled:
        with connection.transaction():
            return cancel.cancel(connection, turn, None)

    try:
        found = ports.database.read(work)
    except cancel.TurnOver:
        return False
    if found.status is TurnStatus.CANCELLED:
        telling.parent_of(ports.database.read, turn, ports.publisher.tell)
    return True

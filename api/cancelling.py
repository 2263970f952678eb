"""What goes on after a cancel is committed: its worker hears of it, and whatever hangs below the turn is cancelled too.

The tree's root is committed before this runs, so nothing here may fail the request. What is missed here is found by
each worker's question, and by the sweep.
"""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import structlog

from api.services import Services
from api.waking import ring_for
from shared import telling
from shared.errors import NightshiftError
from shared.store import cancel
from shared.store.cancel import Cancelled
from shared.store.pool import Connection
from shared.values import TurnClass, TurnStatus

log = structlog.get_logger("api")


def follow(serving: Services, turn: UUID, found: Cancelled, who: UUID) -> None:
    """Tell of the cancel of `turn`, and go down its tree, a transaction a turn."""
    _tell(serving, turn, found)
    try:
        for each in serving.database.read(lambda c: cancel.below(c, turn)):
            one(serving, each, who)
    except NightshiftError as error:
        log.warning("cancel.tree_left", turn=str(turn), code=error.code)


def one(
    serving: Services,
    turn: UUID,
    who: UUID,
    how: Callable[[Connection, UUID, UUID | None], Cancelled] = cancel.cancel,
) -> None:
    """A transaction of its own; one that is over by now is left alone."""

    def work(connection: Connection) -> Cancelled:
        with connection.transaction():
            return how(connection, turn, who)

    try:
        found = serving.database.read(work)
    except cancel.TurnOver:
        return
    _tell(serving, turn, found)


def _tell(serving: Services, turn: UUID, found: Cancelled) -> None:
    ring_for(serving, found.woken)
    if found.woken is not None:
        telling.parent_of(serving.database.read, turn, serving.hints.aside)
    if found.status is TurnStatus.RUNNING:
        serving.hints.tell("cancel", turn)
        return
    serving.hub.nudge()
    serving.ringer.ring(TurnClass.INTERACTIVE)  # the next turn of this session may run now

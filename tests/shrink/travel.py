"""What tests of time travel do: one scripted turn, a rewind, a restore, a compaction, as the API would ask for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from shared.request import canonical
from shared.store import asked
from shared.store.asked import Asked
from shared.store.pool import Connection
from shared.values import TurnClass
from tests.ground import Ground, Rehearsal


def said(worker: Ground, provider: Rehearsal, session: UUID, text: str, *replies: str | dict[str, Any]) -> UUID:
    """One turn to its end; each reply is what the model says in one call."""
    script = [{"text": one} if isinstance(one, str) else one for one in replies]
    provider.script(script, session=str(session))
    turn = worker.turn(session, text)
    worker.look()
    assert worker.view(turn)["status"] == "done", worker.view(turn)
    return turn


def ask(worker: Ground, make: Callable[[Connection], Asked]) -> Asked:
    def work(connection: Connection) -> Asked:
        with connection.transaction():
            return make(connection)

    return worker.database.read(work)


def rewound(worker: Ground, session: UUID, to_turn: UUID) -> dict[str, Any]:
    """Asked for and carried out; the request's row with its outcome."""
    return _carried_out(
        worker, session, ask(worker, lambda c: asked.rewind(c, session, to_turn, worker.person, queue_bound=100))
    )


def back(worker: Ground, session: UUID, rewind: int | None = None) -> dict[str, Any]:
    return _carried_out(
        worker, session, ask(worker, lambda c: asked.restore(c, session, rewind, worker.person, queue_bound=100))
    )


def compacted(worker: Ground, session: UUID) -> dict[str, Any]:
    return _carried_out(
        worker, session, ask(worker, lambda c: asked.compact(c, session, worker.person, queue_bound=100))
    )


def _carried_out(worker: Ground, session: UUID, made: Asked) -> dict[str, Any]:
    worker.look_once(TurnClass.CHORE)
    found = worker.database.read(lambda c: asked.find(c, session, made.request))
    assert found is not None
    assert found["turn_status"] == "done", found
    outcome: Any = canonical.load_strict(found["outcome"])
    return {**found, "outcome": outcome}

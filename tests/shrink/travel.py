"""What tests of time travel do: scripted turns, a rewind, a restore, a compaction as the API asks for them, and edits
as a holder writes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from shared.request import canonical
from shared.request.edits import EditRow
from shared.store import asked, transcript
from shared.store.asked import Asked
from shared.store.pool import Connection
from shared.values import EventKind, TurnClass
from tests.ground import Ground, Rehearsal

Reply = str | dict[str, Any]


def said(worker: Ground, provider: Rehearsal, session: UUID, text: str, *replies: Reply) -> UUID:
    """One turn to its end; each reply is what the model says in one call."""
    script = [{"text": one} if isinstance(one, str) else one for one in replies]
    provider.script(script, session=str(session))
    turn = worker.turn(session, text)
    worker.look()
    assert worker.view(turn)["status"] == "done", worker.view(turn)
    return turn


def ask(worker: Ground, make: Callable[[Connection], Asked]) -> Asked:
    """Asked for as the API does, and not carried out yet."""

    def work(connection: Connection) -> Asked:
        with connection.transaction():
            return make(connection)

    return worker.database.read(work)


def ask_rewind(worker: Ground, session: UUID, to_turn: UUID) -> Asked:
    return ask(worker, lambda c: asked.rewind(c, session, to_turn, worker.person, queue_bound=100))


def ask_restore(worker: Ground, session: UUID, rewind: int | None = None) -> Asked:
    return ask(worker, lambda c: asked.restore(c, session, rewind, worker.person, queue_bound=100))


def ask_compact(worker: Ground, session: UUID) -> Asked:
    return ask(worker, lambda c: asked.compact(c, session, worker.person, queue_bound=100))


def came_of(worker: Ground, session: UUID, made: Asked) -> dict[str, Any]:
    """The request's row; `outcome` None while it waits."""
    found = worker.database.read(lambda c: asked.find(c, session, made.request))
    assert found is not None
    outcome: Any = None if found["outcome"] is None else canonical.load_strict(found["outcome"])
    return {**found, "outcome": outcome}


def rewound(worker: Ground, session: UUID, to_turn: UUID) -> dict[str, Any]:
    return _done(worker, session, ask_rewind(worker, session, to_turn))


def restored(worker: Ground, session: UUID, rewind: int | None = None) -> dict[str, Any]:
    return _done(worker, session, ask_restore(worker, session, rewind))


def compacted(worker: Ground, session: UUID) -> dict[str, Any]:
    return _done(worker, session, ask_compact(worker, session))


def _done(worker: Ground, session: UUID, made: Asked) -> dict[str, Any]:
    worker.look_once(TurnClass.CHORE)
    found = came_of(worker, session, made)
    assert (found["turn_status"], found["outcome"]["result"]) == ("done", "done"), found
    return found


def edited(worker: Ground, session: UUID, edit: EditRow) -> int:
    """An edit as its holder leaves it, in an idle session; its id is given here."""
    row = worker.one(
        """with e as (
          insert into edits (session, kind, first, last, block, text, prefix, kept, cause, fence)
          select id, %s, %s, %s, %s, %s, %s, %s, 'test', fence from sessions where id = %s returning id, session, prefix
        ) update sessions set last_edit = e.id, chain_blocks = null, chain_digest = null,
          last_breakpoint_message = null, prefix = coalesce(e.prefix, sessions.prefix)
        from e where sessions.id = e.session returning last_edit""",
        edit.kind, edit.first, edit.last, edit.block, edit.text, edit.prefix, edit.kept, session,
    )  # fmt: skip
    return row["last_edit"]


def column(worker: Ground, session: UUID, *names: str) -> dict[str, Any]:
    row = worker.one("select * from sessions where id = %s", session)
    return {name: row[name] for name in names}


def shown(worker: Ground, session: UUID) -> list[str]:
    """What the model sees of the session now, a text a block; calls and results by their kind."""
    prefix = column(worker, session, "prefix")["prefix"]
    request = worker.database.read(lambda c: transcript.project(c, session, prefix))
    found: list[str] = []
    for piece in request.pieces:
        for block in piece.blocks:
            value: Any = canonical.load_strict(block)
            found.append(value.get("text") or value["type"])
    return found


def broken(worker: Ground, session: UUID) -> int:
    """How often a request did not extend the one before it."""
    turns = worker.rows("select id from turns where session = %s", session)
    events = [event for turn in turns for event in worker.events(turn["id"])]
    return sum(event.kind == EventKind.PREFIX_BROKEN for event in events)


def messages_of(worker: Ground, turn: UUID) -> tuple[int, int]:
    row = worker.one("select min(id) as first, max(id) as last from messages where turn = %s", turn)
    return row["first"], row["last"]

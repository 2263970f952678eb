"""Stop everything: an admin pauses claims, of all or of some, and cancels trees with it, in one call.

A stop is a row that stands over every restart until it is lifted. Only admins know that there are any.
"""

from __future__ import annotations

import time

from fastapi import APIRouter
from starlette.responses import Response

from api import answers, cancelling, commands, pages
from api.auth import allow
from api.commands import Answer
from api.injected import Reading, Serving, Writing, identifier
from api.openapi import accepts, gives
from api.reads import stops
from api.services import Services
from api.wire.asked import StopAsked
from api.wire.shown import Stop, StopPage
from shared.errors import NightshiftError, Refused
from shared.ids import uuid7
from shared.store.pool import Connection
from shared.store.statements import every, one, run
from shared.store.statements import stops as statements
from shared.values import Role, TurnClass

router = APIRouter(tags=["stops"])
BATCH = 100
CANCEL_S = 2.0
"""How long the request itself goes on cancelling; what is left by then is the sweep's."""


@router.post("/v1/stops", status_code=201, openapi_extra=accepts(StopAsked), responses=gives(Stop, 201))
def place(serving: Serving, written: Writing) -> Response:
    """Nothing of that scope is claimed from the commit on, and what runs is handed back after its step; a stopped tool
    is refused. With `cancel`, what was there before is cancelled, with its trees."""
    allow(written.caller, Role.ADMIN)
    asked = written.body(StopAsked)
    if asked.cancel and asked.scope == "tool":
        raise Refused("a tool has no turns to cancel: stop it without cancel", code="tool_cancel", status=422)
    stop, who = uuid7(), written.caller.principal.id

    def effect(connection: Connection) -> Answer:
        values = {
            "stop": stop, "scope": asked.scope, "subject": stops.subject(connection, asked.scope, asked.subject),
            "cancel": asked.cancel, "note": asked.note, "principal": who,
        }  # fmt: skip
        run(connection, statements.PLACE_STOP, values)
        shown = stops.find(connection, stop)
        return Answer(201, answers.text(shown), after=lambda: _cancel(serving, shown))

    return commands.perform(serving, written, effect).response()


@router.get("/v1/stops", responses=gives(StopPage))
def list_stops(
    serving: Serving,
    caller: Reading,
    lifted: bool = False,
    limit: pages.Limit = pages.DEFAULT,
    cursor: pages.Cursor = None,
) -> Response:
    """What stands, newest first; `lifted` shows what was lifted too."""
    allow(caller, Role.ADMIN)
    skip = pages.decode(cursor, 0)
    rows = serving.database.read(lambda c: stops.page(c, skip, limit + 1, lifted=lifted))
    following = pages.encode(skip + limit) if len(rows) > limit else None
    return answers.ok(StopPage(items=rows[:limit], next=following))


@router.get("/v1/stops/{stop}", responses=gives(Stop))
def get_stop(serving: Serving, caller: Reading, stop: str) -> Response:
    """One stop."""
    allow(caller, Role.ADMIN)
    id_ = identifier(stop)
    return answers.ok(serving.database.read(lambda c: stops.find(c, id_)))


@router.delete("/v1/stops/{stop}", responses=gives(Stop))
def lift(serving: Serving, written: Writing, stop: str) -> Response:
    """Lift a stop: what waited may be claimed again. Lifting one that was lifted changes nothing."""
    allow(written.caller, Role.ADMIN)
    id_, who = identifier(stop), written.caller.principal.id

    def work(connection: Connection, _again: bool) -> Stop:
        with connection.transaction():
            one(connection, statements.LIFT_STOP, {"stop": id_, "principal": who})
            return stops.find(connection, id_)

    shown = serving.database.run(work)
    for turn_class in TurnClass:
        serving.ringer.ring(turn_class)
    return answers.ok(shown)


def _cancel(serving: Services, stop: Stop) -> None:
    """As far as the time goes: the stop itself is committed, and its row says what is still to be done."""
    end = time.monotonic() + CANCEL_S
    values = {"stop": stop.id, "limit": BATCH}
    try:
        while stop.cancel and time.monotonic() < end:
            rows = serving.database.read(lambda c: every(c, statements.DOOMED, values))
            for row in rows:
                if time.monotonic() < end:
                    cancelling.one(serving, row["id"], row["placed_by"])
            if len(rows) < BATCH:
                return
    except NightshiftError:
        return

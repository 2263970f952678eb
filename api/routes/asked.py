"""What a person asks of a transcript as a whole: taken back, brought back, made smaller; and how that stands."""

from __future__ import annotations

from uuid import UUID

from fastapi import APIRouter
from starlette.responses import Response

from api import answers, commands, problems
from api.commands import Answer
from api.injected import Reading, Serving, Writing, identifier
from api.openapi import accepts, gives
from api.reads import asked as shown
from api.reads import sessions, turns
from api.services import Services
from api.wire.asked import Nothing, RestoreAsked, RewindAsked
from api.wire.context import RequestTaken, TranscriptRequest
from shared.store import asked
from shared.store.pool import Connection
from shared.values import TurnClass

router = APIRouter(tags=["sessions"])


@router.post(
    "/v1/sessions/{session}/rewind",
    status_code=202,
    openapi_extra=accepts(RewindAsked),
    responses=gives(RequestTaken, 202),
)
def rewind_session(serving: Serving, written: Writing, session: str) -> Response:
    """Take back everything from the first message of `to_turn` on, that turn included: the model does not see it any
    more and search does not find it, and it can be restored. A session in which a turn runs, waits or is queued is
    refused (409 `session_busy`). `effects` and `memory` are what this does not undo."""
    id_, who = identifier(session), written.caller.principal.id
    wanted = written.body(RewindAsked)

    def effect(connection: Connection) -> Answer:
        sessions.must_see(connection, id_, who)
        made = asked.rewind(connection, id_, wanted.to_turn, who, queue_bound=_bound(serving))
        return _answer(connection, serving, id_, who, made, with_effects=True)

    return commands.perform(serving, written, effect).response()


@router.post(
    "/v1/sessions/{session}/restore",
    status_code=202,
    openapi_extra=accepts(RestoreAsked),
    responses=gives(RequestTaken, 202),
)
def restore_session(serving: Serving, written: Writing, session: str) -> Response:
    """Undo one rewind: the newest in force, or the one that `rewind` names. What it took back stands again where it
    was, before whatever was said since."""
    id_, who = identifier(session), written.caller.principal.id
    wanted = written.body(RestoreAsked)

    def effect(connection: Connection) -> Answer:
        sessions.must_see(connection, id_, who)
        rewind = None if wanted.rewind is None else int(wanted.rewind)
        made = asked.restore(connection, id_, rewind, who, queue_bound=_bound(serving))
        return _answer(connection, serving, id_, who, made)

    return commands.perform(serving, written, effect).response()


@router.post(
    "/v1/sessions/{session}/compact",
    status_code=202,
    openapi_extra=accepts(Nothing),
    responses=gives(RequestTaken, 202),
)
def compact_session(serving: Serving, written: Writing, session: str) -> Response:
    """Let a summary stand for the middle of the conversation: at the next boundary of a turn that runs, else at once.
    Asked twice while it waits, it happens once."""
    id_, who = identifier(session), written.caller.principal.id
    written.body(Nothing)

    def effect(connection: Connection) -> Answer:
        sessions.must_see(connection, id_, who)
        made = asked.compact(connection, id_, who, queue_bound=_bound(serving))
        return _answer(connection, serving, id_, who, made)

    return commands.perform(serving, written, effect).response()


@router.get("/v1/sessions/{session}/requests/{request}", responses=gives(TranscriptRequest))
def get_request(serving: Serving, caller: Reading, session: str, request: str) -> Response:
    """A rewind, restore or compaction that was asked for: how it stands, and what came of it."""
    id_ = identifier(session)
    if not request.isdecimal() or len(request) > 18:
        raise problems.not_found()

    def read(connection: Connection) -> TranscriptRequest:
        sessions.must_see(connection, id_, caller.principal.id)
        return shown.find(connection, id_, int(request))

    return answers.ok(serving.database.read(read))


def _bound(serving: Services) -> int:
    return serving.settings.queued_per_session


def _answer(
    connection: Connection,
    serving: Services,
    session: UUID,
    who: UUID,
    made: asked.Asked,
    *,
    with_effects: bool = False,
) -> Answer:
    """The request with its turn; of a rewind also what it will not undo, which can only be told before it is made."""
    body = RequestTaken(
        request=shown.find(connection, session, made.request), turn=turns.find(connection, made.turn, who),
        events=f"/v1/turns/{made.turn}/events", effects=[], memory=[], more=False,
    )  # fmt: skip
    if with_effects and made.first is not None and made.last is not None:
        runs, changes = asked.effects(connection, session, made.first, made.last)
        body.effects, body.memory = shown.effects(runs), shown.remembered(changes)
        body.more = max(len(runs), len(changes)) > asked.MOST_TOLD
    return Answer(202, answers.text(body), after=lambda: serving.ringer.ring(TurnClass.CHORE))

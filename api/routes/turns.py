"""Turns: begun, looked at, steered, cancelled."""

from __future__ import annotations

from decimal import Decimal
from uuid import UUID

from fastapi import APIRouter
from starlette.responses import Response

from api import answers, cancelling, commands, texts
from api.commands import Answer
from api.injected import Reading, Serving, Writing, identifier
from api.openapi import accepts, gives
from api.reads import sessions, turns
from api.services import Services
from api.waking import ring_for
from api.wire.asked import Input, Nothing, SteerAsked, TurnAsked
from api.wire.shown import Turn, TurnHolder, TurnStarted
from shared.store import cancel, intake
from shared.store.pool import Connection
from shared.values import TurnClass

router = APIRouter(tags=["turns"])


@router.post(
    "/v1/sessions/{session}/turns", status_code=202, openapi_extra=accepts(TurnAsked), responses=gives(TurnStarted, 202)
)
def start_turn(serving: Serving, written: Writing, session: str) -> Response:
    """Send an input. A busy session queues it, takes it as steering, or refuses it, as `on_busy` says."""
    id_ = identifier(session)
    asked = written.body(TurnAsked)
    who = written.caller.principal.id
    new = _new(serving, written, id_, asked.input, asked.max_steps, asked.cap_usd)

    def effect(connection: Connection) -> Answer:
        sessions.must_see(connection, id_, who)
        bound = serving.settings.queued_per_session
        return _taken(connection, serving, who, intake.admit(connection, new, on_busy=asked.on_busy, queue_bound=bound))

    return commands.perform(serving, written, effect).response()


def _new(
    serving: Services,
    written: Writing,
    session: UUID,
    given: Input,
    max_steps: int | None = None,
    cap_usd: Decimal | None = None,
) -> intake.NewTurn:
    settings = serving.settings
    return intake.NewTurn(
        session=session, principal=written.caller.principal.id, turn_class=TurnClass.INTERACTIVE,
        payload=texts.payload(given), deadline_s=settings.interactive_deadline_s,
        max_steps=max_steps or settings.max_steps, cap_usd=cap_usd if cap_usd is not None else settings.turn_cap_usd,
    )  # fmt: skip


def _taken(connection: Connection, serving: Services, who: UUID, admitted: intake.Admitted) -> Answer:
    turn = turns.find(connection, admitted.turn, who)
    shown = TurnStarted(turn=turn, events=f"/v1/turns/{admitted.turn}/events", how=admitted.how)
    return Answer(202, answers.text(shown), after=lambda: _tell(serving, admitted))


def _tell(serving: Services, admitted: intake.Admitted) -> None:
    """A running turn hears of words by a hint; one that they woke may be claimed."""
    match admitted.how:
        case intake.How.QUEUED:
            serving.ringer.ring(TurnClass.INTERACTIVE)
        case intake.How.STEERED:
            serving.hints.tell("steer", admitted.turn)
            ring_for(serving, admitted.woken)


@router.get("/v1/turns/{turn}", responses=gives(Turn))
def get_turn(serving: Serving, caller: Reading, turn: str) -> Response:
    """One turn: how it stands, its answer, its bill."""
    id_, who = identifier(turn), caller.principal.id
    return answers.ok(serving.database.read(lambda c: turns.find(c, id_, who)))


@router.post(
    "/v1/turns/{turn}/steer", status_code=202, openapi_extra=accepts(SteerAsked), responses=gives(TurnStarted, 202)
)
def steer_turn(serving: Serving, written: Writing, turn: str) -> Response:
    """Say something to a turn that is under way. A call that is out is cut for it; what a tool does is finished first.
    Where your role is below the turn's, it becomes a turn of your own: `how` says `queued`, and `turn` is that one."""
    id_, who = identifier(turn), written.caller.principal.id
    given = written.body(SteerAsked).input
    texts.payload(given)

    def effect(connection: Connection) -> Answer:
        session: UUID = turns.session_of(connection, id_, who)["session"]
        new = _new(serving, written, session, given)
        bound = serving.settings.queued_per_session
        return _taken(connection, serving, who, intake.steer(connection, id_, new, queue_bound=bound))

    return commands.perform(serving, written, effect).response()


@router.post(
    "/v1/turns/{turn}/cancel", status_code=202, openapi_extra=accepts(Nothing), responses=gives(TurnHolder, 202)
)
def cancel_turn(serving: Serving, written: Writing, turn: str) -> Response:
    """End a turn and what it delegated: at once what waits, the rest as soon as its worker has shut its call or killed
    its tools. One that is over already is answered with its answer (409 `turn_over`)."""
    id_, who = identifier(turn), written.caller.principal.id
    written.body(Nothing)

    def effect(connection: Connection) -> Answer:
        turns.session_of(connection, id_, who)
        found = cancel.cancel(connection, id_, who)
        return _shown(connection, id_, who, after=lambda: cancelling.follow(serving, id_, found, who))

    return commands.perform(serving, written, effect).response()


def _shown(connection: Connection, turn: UUID, who: UUID, *, after: commands.After) -> Answer:
    return Answer(202, answers.text(TurnHolder(turn=turns.find(connection, turn, who))), after=after)

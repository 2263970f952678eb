"""The team's inbox of decisions on tool calls."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter
from starlette.responses import Response

from api import answers, commands, pages
from api.commands import Answer
from api.injected import Reading, Serving, Writing, identifier
from api.openapi import accepts, gives
from api.reads import approvals
from api.waking import ring_for
from api.wire.asked import DecisionAsked
from api.wire.shown import Approval, ApprovalPage
from shared.store import waits
from shared.store.pool import Connection

router = APIRouter(tags=["approvals"])
Status = Literal["pending", "approved", "denied", "expired", "void"]


@router.get("/v1/approvals", responses=gives(ApprovalPage))
def list_approvals(
    serving: Serving,
    caller: Reading,
    status: Status | None = None,
    limit: pages.Limit = pages.DEFAULT,
    cursor: pages.Cursor = None,
) -> Response:
    """What was asked of people in the sessions that the caller may see, and elsewhere what is the caller's to decide;
    newest first, one batch in call order."""
    skip = pages.decode(cursor, 0)
    rows = serving.database.read(lambda c: approvals.page(c, caller.principal, status, skip, limit + 1))
    following = pages.encode(skip + limit) if len(rows) > limit else None
    return answers.ok(ApprovalPage(items=rows[:limit], next=following))


@router.get("/v1/approvals/{approval}", responses=gives(Approval))
def get_approval(serving: Serving, caller: Reading, approval: str) -> Response:
    """One request with its arguments whole."""
    id_ = identifier(approval)
    return answers.ok(serving.database.read(lambda c: approvals.find(c, id_, caller.principal)))


@router.post("/v1/approvals/{approval}", openapi_extra=accepts(DecisionAsked), responses=gives(Approval))
def decide(serving: Serving, written: Writing, approval: str) -> Response:
    """Allow one call, or deny it; the decision is made once and stands. A yes of scope `session` or `always`
    also covers later calls of the same principal that meet the same rules: those in `may_cover`."""
    id_, who = identifier(approval), written.caller.principal
    asked = written.body(DecisionAsked)

    def effect(connection: Connection) -> Answer:
        approvals.find(connection, id_, who)  # what one may not see does not exist, whatever one's role
        woken = waits.decide(
            connection, id_, who.id, who.role, approve=asked.decision == "approve", note=asked.note or None,
            scope=asked.scope,
        )  # fmt: skip
        shown = approvals.find(connection, id_, who)
        return Answer(200, answers.text(shown), after=lambda: ring_for(serving, woken))

    return commands.perform(serving, written, effect).response()

"""What may be spent together: of a job, by a person a day, by the team a month."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from api import answers
from api.injected import Reading, Serving, Writing
from api.openapi import accepts, gives
from api.reads import budgets as reads
from api.wire.money import Budget, BudgetAsked, BudgetPage, Period, Scope
from shared.errors import Refused
from shared.store import budgets
from shared.store.pool import Connection
from shared.values import Role

router = APIRouter(tags=["caps"])


@router.get("/v1/budgets", responses=gives(BudgetPage))
def list_budgets(serving: Serving, caller: Reading) -> Response:
    """The shared caps and how far their windows are used: the team's, one's own, one's jobs'; all of them for an
    admin."""
    who, everyone = caller.principal.id, caller.principal.role is Role.ADMIN

    def read(connection: Connection) -> BudgetPage:
        found = reads.page(connection, who, everyone=everyone)
        return BudgetPage(items=found, zone=reads.zone(connection))

    return answers.ok(serving.database.read(read))


@router.put("/v1/budgets/{scope}/{subject}/{period}", openapi_extra=accepts(BudgetAsked), responses=gives(Budget))
def set_budget(serving: Serving, written: Writing, scope: Scope, subject: str, period: Period) -> Response:
    """Set a shared cap, up or down, at any time; it holds from the next call of every turn on, and turns that wait for
    money go on where it makes room. An admin, or for a job whose it is. With `was_usd` only if nobody was faster."""
    asked, caller = written.body(BudgetAsked), written.caller.principal
    was = asked.was_usd if "was_usd" in asked.model_fields_set else budgets.ANY

    def work(connection: Connection, _again: bool) -> Budget:
        with connection.transaction():
            if caller.role is not Role.ADMIN and scope != "job":
                raise _not_yours(scope)
            id_ = reads.subject(connection, scope, subject)
            if caller.role is not Role.ADMIN and (id_ == "*" or not reads.owns(connection, id_, caller.id)):
                raise _not_yours(scope)
            budgets.set_cap(connection, scope, id_, period, caller.id, asked.cap_usd, was)
            return reads.one(connection, scope, id_, period) or reads.none(scope, id_, period)

    shown = serving.database.run(work)
    serving.ringer.ring("sweep")
    return answers.ok(shown)


def _not_yours(scope: Scope) -> Refused:
    whose = "whose job it is, or an admin, sets" if scope == "job" else "an admin sets"
    return Refused(f"{whose} the cap of a {scope}: ask them", code="not_yours", status=403)

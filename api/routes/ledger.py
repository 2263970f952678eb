"""What was spent, by whom and on what."""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from api import answers
from api.auth import allow
from api.injected import Reading, Serving
from api.openapi import gives
from api.problems import invalid
from api.reads import ledger
from api.reads.ledger import By
from api.wire.money import UsagePage
from api.wire.shown import Ledger
from shared.values import Role

router = APIRouter(tags=["ledger"])


@router.get("/v1/ledger", responses=gives(Ledger))
def read_ledger(
    serving: Serving,
    caller: Reading,
    by: By = By.DAY,
    since: Annotated[datetime | None, Query(description="With its offset, such as 2026-11-30T00:00:00Z")] = None,
    until: Annotated[datetime | None, Query(description="As `since`; not included")] = None,
) -> Response:
    """Money and tokens of the calls that the caller may see; of all calls for an admin. Days are the team's."""
    for name, instant in (("since", since), ("until", until)):
        if instant is not None and instant.tzinfo is None:
            raise invalid(name, "needs an offset, such as Z or +02:00")
    rows, total = serving.database.read(
        lambda connection: ledger.add_up(
            connection,
            by,
            who=caller.principal.id,
            everyone=caller.principal.role is Role.ADMIN,
            zone=serving.settings.team_zone,
            since=since,
            until=until,
        )
    )
    return answers.ok(Ledger(items=rows, by=by, total=total))


MOST_DAYS = 400


@router.get("/v1/ledger/usage", responses=gives(UsagePage))
def read_usage(serving: Serving, caller: Reading, since: date, until: date) -> Response:
    """The tokens of every call by day in UTC, provider and model, both days included: what a provider's own export is
    compared with. An admin's."""
    allow(caller, Role.ADMIN)
    if not 0 <= (until - since).days < MOST_DAYS:
        raise invalid("until", f"must not be before `since`, nor {MOST_DAYS} days after it")
    return answers.ok(UsagePage(items=serving.database.read(lambda c: ledger.usage(c, since, until))))

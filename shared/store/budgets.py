"""Shared caps, changed by people. The caller is inside a transaction and rings the sweep after its commit, which wakes
who waits for room.

The invariants: changes happen one after the other, each with its line in the audit; what runs compares the version that
each of them raises, so the new cap holds from its next call on.
"""

from __future__ import annotations

from decimal import Decimal
from uuid import UUID

from shared.errors import Refused
from shared.store.pool import Connection
from shared.store.statements import budgets, one, run

ANY = object()
"""Whatever the cap was."""


def set_cap(
    connection: Connection, scope: str, subject: str, period: str, by: UUID, cap: Decimal | None, was: object = ANY
) -> None:
    """`None` takes the cap away; `was` is what whoever changes it has seen. Raises Refused `cap_changed` (409)."""
    key = {"scope": scope, "id": subject, "period": period}
    one(connection, budgets.LOCK_RULES, {})
    stands = one(connection, budgets.CAP_STANDS, key)
    before = None if stands is None else stands["cap_usd"]
    if was is not ANY and was != before:
        now = "there is none" if before is None else f"it is ${before}"
        raise Refused(
            f"somebody has changed this cap since you saw it ({now} now): look again, then set it",
            code="cap_changed", status=409,
        )  # fmt: skip
    if cap is None:
        run(connection, budgets.DROP_BUDGET, key)
        run(connection, budgets.FORGET_WINDOWS, key)
    else:
        run(connection, budgets.SET_BUDGET, key | {"cap_usd": cap})
        run(connection, budgets.TOLD_ANEW, key | {"cap_usd": cap})
    said = [f"${usd}" if isinstance(usd, Decimal) else "none" for usd in (before, cap)]
    told = {"principal": by, "subject": f"{scope} {subject} {period}", "detail": f"from {said[0]} to {said[1]}"}
    run(connection, budgets.BUDGET_AUDIT, told)

"""What tests of waiting turns do as the API does it, and what they read."""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from uuid import UUID

from shared.store import cancel
from shared.store.pool import Connection
from tests.ground import Ground


def tool(name: str, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "input": arguments}


def delegate(*goals: str, **more: Any) -> dict[str, Any]:
    return tool("delegate_task", tasks=[{"goal": goal} for goal in goals], **more)


def cancelled(worker: Ground, turn: UUID) -> cancel.Cancelled:
    """One turn, without what hangs below it: as if the API died right after its commit."""

    def work(connection: Connection) -> cancel.Cancelled:
        with connection.transaction():
            return cancel.cancel(connection, turn, worker.person)

    return worker.database.read(work)


def first_call_usd(worker: Ground) -> Decimal:
    """What the first call of a new session may cost at worst, which grows with every tool that there is; of a turn that
    made none."""
    turn = worker.turn(worker.session(), "go", cap_usd=Decimal("0.0001"))
    worker.look()
    usd = worker.view(turn)["short_usd"]
    cancelled(worker, turn)
    return usd


def children(worker: Ground, turn: UUID) -> list[dict[str, Any]]:
    return worker.rows("select * from turns where parent = %s order by parent_step, parent_ordinal, child_index", turn)


def advance(worker: Ground, by_s: float) -> None:
    worker.execute("update test_clock set target_s = target_s + %s, offset_s = offset_s + %s", by_s, by_s)


def result(worker: Ground, turn: UUID) -> str:
    row = worker.one("select result from tool_runs where turn = %s order by step, ordinal limit 1", turn)
    return str(row["result"])

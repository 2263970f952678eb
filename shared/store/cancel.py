"""A turn is asked to end, whatever its state. The first commit wins; a running turn is ended by its holder.

Lock order: the parent's turn (a cancel may end a child), the session, the turn. Cancelling a tree marks its root only:
children learn it at their own next statement, by their process's question, or by the sweep.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from psycopg.rows import DictRow

from shared.errors import Refused
from shared.request import blocks
from shared.store import waits
from shared.store.arrays import array
from shared.store.intake import fetch
from shared.store.pool import Connection
from shared.store.statements import every, holder, inbox, one, run, waiting
from shared.store.waits import Woken
from shared.values import TERMINAL, TurnStatus

NEVER_RAN = "cancelled: the turn was stopped before this was decided"


@dataclass(frozen=True, slots=True)
class Cancelled:
    """How the turn stands afterwards: `cancelled`, or `running` with the holder that will end it. `woken` is the
    parent, where this ended the last child that it waited for."""

    status: TurnStatus
    holder: UUID | None = None
    woken: Woken | None = None


def cancel(connection: Connection, turn: UUID, principal: UUID | None) -> Cancelled:
    """Inside a transaction. `principal` None: nobody asked, its parent is over. Raises Refused `turn_over` (409)."""
    parent = waits.lock_parent(connection, turn)
    params = {"turn": turn, "principal": principal}
    for _ in range(5):  # a turn moves between states while we look; each try is a compare-and-set
        if one(connection, inbox.CANCEL_QUEUED, params):
            return _ended(connection, turn, parent)
        running = one(connection, inbox.CANCEL_RUNNING, params)
        if running:
            return Cancelled(TurnStatus.RUNNING, running["holder"])
        found = fetch(connection, "select session, step, status, answer from turns where id = %s", (turn,))
        if found is None:
            raise Refused("there is no such turn", code="not_found", status=404)
        if found["status"] in TERMINAL:
            raise Refused(f"the turn is over already ({found['status']})", code="turn_over", status=409)
        if found["status"] == TurnStatus.PARKED and _cancel_parked(connection, turn, found, principal):
            return _ended(connection, turn, parent)
    raise Refused("the turn changes faster than it can be cancelled: try again", code="turn_moving", status=409)


def _ended(connection: Connection, turn: UUID, parent: UUID | None) -> Cancelled:
    woken = None if parent is None else waits.child_over(connection, turn, parent)
    return Cancelled(TurnStatus.CANCELLED, woken=woken)


def _cancel_parked(connection: Connection, turn: UUID, found: DictRow, principal: UUID | None) -> bool:
    """Session first, then the turn re-read in a later statement: the fence must not rise under a live holder."""
    connection.execute("select 1 from sessions where id = %s for no key update", (found["session"],))
    row = fetch(connection, "select status, step from turns where id = %s for update", (turn,))
    if row is None or row["status"] != TurnStatus.PARKED:
        return False
    open_runs = every(connection, holder.OPEN_RUNS, {"turn": turn, "step": row["step"]})
    params = {
        "turn": turn, "session": found["session"], "principal": principal,
        "m_step": array(r["step"] for r in open_runs), "m_ordinal": array(r["ordinal"] for r in open_runs),
        "m_content": array(_content(r) for r in open_runs),
    }  # fmt: skip
    if one(connection, inbox.CANCEL_PARKED, params) is None:
        return False
    run(connection, waiting.VOID_APPROVALS, {"turn": turn})
    run(connection, waiting.VOID_QUESTIONS, {"turn": turn})
    return True


def _content(row: DictRow) -> str:
    """The result of one open call: its own, where it had run before the turn slept."""
    if row["status"] in ("done", "failed", "unknown", "denied"):
        return blocks.join([blocks.tool_result(row["call_id"], row["result"] or "", row["is_error"])])
    return blocks.join([blocks.tool_result(row["call_id"], NEVER_RAN, is_error=True)])

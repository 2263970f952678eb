"""A turn is asked to end, whatever its state. The first commit wins; a running turn is ended by its holder.

Lock order: the parent's turn (a cancel may end a child), the session, the turn. A transaction cancels one turn: the
caller goes on with what hangs `below` it, each in a transaction of its own. Where it dies on the way, a running child
learns it by its process's question, and one that nobody holds is found by the sweep.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from psycopg.rows import DictRow

from shared import effects
from shared.errors import Refused
from shared.request import blocks
from shared.store import children
from shared.store.arrays import array
from shared.store.intake import fetch
from shared.store.pool import Connection
from shared.store.statements import every, holder, inbox, one, run, trees, waiting
from shared.store.waits import Woken
from shared.values import TERMINAL, Repeat, RunStatus, TurnStatus

NEVER_RAN = "cancelled: the turn was stopped before this was decided"
MOST_BELOW = 200
"""Of a tree in one go; the sweep ends what is left of a larger one."""


class TurnOver(Refused):
    """Too late: somebody else's commit came first. `answer` is what the turn ended with, None where it has none."""

    code = "turn_over"
    status = 409

    def __init__(self, ended: TurnStatus, answer: str | None) -> None:
        super().__init__(f"the turn is over already ({ended})")
        self.ended = ended
        self.answer = answer


@dataclass(frozen=True, slots=True)
class Cancelled:
    """How the turn stands afterwards: `cancelled`, or `running` with the holder that will end it. `woken` is the
    parent, where this ended the last child that it waited for."""

    status: TurnStatus
    holder: UUID | None = None
    woken: Woken | None = None


def cancel(connection: Connection, turn: UUID, principal: UUID | None) -> Cancelled:
    """Inside a transaction. `principal` None: nobody asked, its parent is over. Raises Refused: `not_found`,
    `turn_moving` (409); and TurnOver, with the answer, where it is over already."""
    parent = children.lock_parent(connection, turn)
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
            raise TurnOver(TurnStatus(found["status"]), found["answer"])
        if found["status"] != TurnStatus.RUNNING and _cancel_begun(connection, turn, found, principal):
            return _ended(connection, turn, parent)
    raise Refused("the turn changes faster than it can be cancelled: try again", code="turn_moving", status=409)


def below(connection: Connection, turn: UUID) -> list[UUID]:
    """What hangs below a turn and is not over, from root to leaf, none of it in the background: the first
    `MOST_BELOW`."""
    return [row["id"] for row in every(connection, trees.LIVE_BELOW, {"turn": turn, "limit": MOST_BELOW})]


def _ended(connection: Connection, turn: UUID, parent: UUID | None) -> Cancelled:
    woken = None if parent is None else children.over(connection, turn, parent)
    return Cancelled(TurnStatus.CANCELLED, woken=woken)


def _cancel_begun(connection: Connection, turn: UUID, found: DictRow, principal: UUID | None) -> bool:
    """Of a turn that is parked, or queued again. Session first, then the turn re-read in a later statement: the fence
    must not rise under a live holder."""
    connection.execute("select 1 from sessions where id = %s for no key update", (found["session"],))
    row = fetch(connection, "select status, step from turns where id = %s for update", (turn,))
    if row is None or row["status"] not in (TurnStatus.PARKED, TurnStatus.QUEUED):
        return False
    open_runs = every(connection, holder.OPEN_RUNS, {"turn": turn, "step": row["step"]})
    params = {"turn": turn, "session": found["session"], "principal": principal, **answers(open_runs)}
    if one(connection, inbox.CANCEL_PARKED, params) is None:
        return False
    run(connection, waiting.VOID_APPROVALS, {"turn": turn})
    run(connection, waiting.VOID_QUESTIONS, {"turn": turn})
    return True


def answers(open_runs: Sequence[DictRow]) -> dict[str, object]:
    """The results of the open calls of a turn that is over with this, as the parameters of the statement that tells."""
    return {
        "m_step": array(row["step"] for row in open_runs), "m_ordinal": array(row["ordinal"] for row in open_runs),
        "m_content": array(_content(row) for row in open_runs),
    }  # fmt: skip


def may_have_run(row: DictRow) -> bool:
    """Of an open run whose holder is gone: whether nobody knows what became of it."""
    return row["status"] == RunStatus.STARTED and row["repeat"] != Repeat.REPEATABLE


def unknown(row: DictRow) -> str:
    return effects.unknown(row["may_run_until"], why="and the turn is over")


def _content(row: DictRow) -> str:
    """The result of one open call: its own, where it had run by then."""
    if row["status"] in ("done", "failed", "unknown", "denied"):
        return blocks.join([blocks.tool_result(row["call_id"], row["result"] or "", row["is_error"])])
    if may_have_run(row):
        return blocks.join([blocks.tool_result(row["call_id"], unknown(row), is_error=True)])
    return blocks.join([blocks.tool_result(row["call_id"], NEVER_RAN, is_error=True)])

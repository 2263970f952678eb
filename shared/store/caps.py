"""Caps, changed by people while turns run or wait. The caller is inside a transaction and rings after its commit.

The invariants: each change stands in `audit` with it; a turn that waits for money is awake in the transaction that made
room for it (its row is locked first, the room looked at in a later statement); the holder of a running one compares the
cap in the statement that reserves. Lock order: the session, then the turn.
"""

from __future__ import annotations

from decimal import Decimal
from uuid import UUID

from shared.errors import Refused
from shared.store import waits
from shared.store.pool import Connection
from shared.store.statements import inbox, money, one, reduction, run, turn_end
from shared.store.waits import Woken
from shared.values import TERMINAL, ParkReason, SessionKind


def of_turn(connection: Connection, turn: UUID, by: UUID, cap_usd: Decimal | None) -> Woken:
    """`None` takes the cap away. The turn must be there. Raises Refused `turn_over` (409), `cap_of_child` (409)."""
    row = one(connection, turn_end.LOCK_TURN, {"turn": turn})
    assert row is not None
    if row["status"] in TERMINAL:
        raise Refused(f"the turn is over ({row['status']}): its cap can change nothing", code="turn_over", status=409)
    if row["parent"] is not None:
        raise _of_child(row["parent"])
    run(connection, money.CAP_TURN, {"capped": turn, "action": "cap.turn", "principal": by, "cap_usd": cap_usd})
    return _wake(connection, turn, row["parked_on"])


def of_session(connection: Connection, session: UUID, by: UUID, cap_usd: Decimal | None) -> Woken | None:
    """`None` takes the cap away. The session must be there. Raises Refused `cap_of_child` (409)."""
    row = one(connection, money.LOCK_SESSION, {"session": session})
    assert row is not None
    if row["kind"] == SessionKind.CHILD:
        raise _of_child(None)
    live = one(connection, inbox.LIVE_TURN_ALONE, {"session": session})
    values = {"capped": session, "action": "cap.session", "principal": by, "cap_usd": cap_usd}
    run(connection, money.CAP_SESSION, values)
    return None if live is None else _wake(connection, live["id"], live["parked_on"])


def keep_warm(connection: Connection, session: UUID, by: UUID, *, wanted: bool) -> None:
    """Whether the session is read before the provider forgets it, from the next look of the scheduler on. The session
    must be there. Raises Refused `child_not_kept_warm` (409)."""
    row = one(connection, money.LOCK_SESSION, {"session": session})
    assert row is not None
    if row["kind"] == SessionKind.CHILD and wanted:
        raise Refused(
            "a child is not talked to again, so nothing is gained by keeping it warm: keep its parent's session warm",
            code="child_not_kept_warm", status=409,
        )  # fmt: skip
    run(connection, reduction.KEEP_WARM, {"session": session, "principal": by, "wanted": wanted})


def speak_to(connection: Connection, session: UUID, by: UUID, provider: str | None, model: str) -> None:
    """Which model answers from the next turn on; the one that runs goes on as it is. The session must be there. Raises
    Refused `child_not_switched` (409)."""
    row = one(connection, money.LOCK_SESSION, {"session": session})
    assert row is not None
    if row["kind"] == SessionKind.CHILD:
        raise Refused("a child speaks to what its parent does: switch that", code="child_not_switched", status=409)
    values = {"session": session, "principal": by, "provider": provider, "model": model}
    run(connection, reduction.SPEAK_TO, values)


def _wake(connection: Connection, turn: UUID, parked_on: str | None) -> Woken:
    return waits.wake(connection, turn) if parked_on == ParkReason.MONEY else Woken(turn, None)


def _of_child(parent: UUID | None) -> Refused:
    of = "the turn that made it" if parent is None else f"turn {parent}"
    return Refused(
        f"a child spends what {of} has promised it: raise the cap of that turn, which then may hand on more",
        code="cap_of_child", status=409,
    )  # fmt: skip

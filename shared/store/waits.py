"""How a wait ends from outside: a decision, an answer (of a child's end tells `children`). The caller is inside a
transaction and rings after its commit.

The invariant: whoever ends a reason has locked the sleeper's row first and wakes it, in a later statement, if nothing
else holds it; so a reason that is gone and a sleeper that sleeps on cannot both be committed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from shared.errors import Refused
from shared.ids import uuid7
from shared.store.pool import Connection
from shared.store.statements import one, turn_end, waiting
from shared.values import ROLE_RANK, Role, TurnClass

Scope = Literal["once", "session", "always"]


@dataclass(frozen=True, slots=True)
class Woken:
    """`turn_class` of the turn that may be claimed again now; None where it still waits, or did not sleep."""

    turn: UUID
    turn_class: TurnClass | None


def wake(connection: Connection, turn: UUID) -> Woken:
    """Wake a turn whose reason is gone. Its row must be locked by an earlier statement of this transaction."""
    row = one(connection, waiting.WAKE_MET, {"turn": turn})
    return Woken(turn, None if row is None else TurnClass(row["class"]))


def decide(
    connection: Connection, approval: UUID, by: UUID, role: Role, *, approve: bool, note: str | None,
    scope: Scope = "once",
) -> Woken:  # fmt: skip
    """One decision on one request. `scope` says how far a yes goes beyond this call. Raises Refused: `not_found`,
    `role_insufficient`, `four_eyes`, `scope_unsupported`, `approval_over`, `already_decided`."""
    found = one(connection, waiting.FIND_APPROVAL, {"approval": approval})
    if found is None:
        raise Refused("there is no such approval", code="not_found", status=404)
    if ROLE_RANK[role] < ROLE_RANK[Role(found["role"])]:
        raise Refused(
            f"only a person with the role {found['role']} may decide this", code="role_insufficient", status=403
        )
    if found["four_eyes"] and found["requested_by"] == by:
        raise Refused("four eyes: somebody other than who asked must decide this", code="four_eyes", status=403)
    if scope != "once" and (not approve or found["four_eyes"] or not found["grantable"]):
        raise _no_scope(approve=approve)
    one(connection, turn_end.LOCK_TURN, {"turn": found["turn"]})
    values = {
        "approval": approval, "principal": by, "status": "approved" if approve else "denied", "note": note,
        "scope": scope, "grant": uuid7(),
    }  # fmt: skip
    if one(connection, waiting.DECIDE, values) is None:
        raise _too_late(connection, approval)
    return wake(connection, found["turn"])


def _no_scope(*, approve: bool) -> Refused:
    words = "a call of this kind is decided each time" if approve else "a no covers this one call"
    return Refused(f"scope: {words}, so leave scope out, or say 'once'", code="scope_unsupported", status=422)


def _too_late(connection: Connection, approval: UUID) -> Refused:
    found = one(connection, waiting.FIND_APPROVAL, {"approval": approval})
    assert found is not None
    if found["status"] in ("approved", "denied") and found["decided_by"]:
        said = f"{found['decided_by']} {found['status']} it already"
        return Refused(f"{said}: a decision stands", code="already_decided", status=409)
    return Refused(
        "this request is over (its time has passed, or its turn ended): nothing was changed",
        code="approval_over",
        status=409,
    )


def answer(connection: Connection, turn: UUID, by: UUID, text: str) -> bool:
    """What a person says to a turn that sleeps for a person: the answer to its questions, or a no to its requests.

    The turn's row must be locked. False where nothing of it was open.
    """
    values = {"turn": turn, "principal": by}
    answered = one(connection, waiting.ANSWER_ALL, values | {"answer": text}) is not None
    denied = one(connection, waiting.DENY_ALL, values | {"note": text}) is not None
    return answered or denied

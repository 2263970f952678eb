"""What a person asks of a transcript as a whole: take back, bring back, make smaller. It writes a row of the inbox and
admits the housekeeping turn that carries it out; the caller commits, then rings.

A rewind and a restore need a session in which nothing runs, waits or is queued: then no call is open, no approval, no
question and no child, and what they name cannot change before they are carried out, since later turns queue behind.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from psycopg.rows import DictRow

from shared.errors import Refused
from shared.ids import uuid7
from shared.request import canonical
from shared.store import intake
from shared.store.pool import Connection
from shared.store.statements import every, inbox, one, run
from shared.store.statements import rewind as statements
from shared.values import InboxKind, OnBusy, TurnClass

DEADLINE_S = 600
MOST_TOLD = 200
"""How many effects, and how many changes of memory, an answer lists; `more` says that there are others."""


@dataclass(frozen=True, slots=True)
class Asked:
    """`turn` carries the request out. `first` and `last` are the messages that a rewind takes back or a restore brings
    back; None for a compaction."""

    request: int
    turn: UUID
    first: int | None = None
    last: int | None = None


def rewind(connection: Connection, session: UUID, to_turn: UUID, who: UUID, *, queue_bound: int) -> Asked:
    """Ask to take back everything from the first message of `to_turn` on. Inside a transaction.

    Raises Refused: `session_busy` (409); `not_found` for a turn that is not this session's; `turn_not_begun` (409)
    where it has no message; `turn_rewound` (409) where it was taken back already; `child_alive` (409) where a child in
    the background has not been heard of yet; `session_queue_full` (429).
    """
    _idle(connection, session)
    first = cut(connection, session, to_turn)
    _no_child(connection, session, first)
    asked = _ask(connection, session, InboxKind.REWIND, who, {"to_turn": str(to_turn)}, queue_bound)
    newest = one(connection, statements.NEWEST_MESSAGE, {"session": session, "before": asked.request})
    assert newest is not None, "a select of an aggregate has one row"
    _audit(connection, who, "session.rewind", session, f"to turn {to_turn}, messages {first} to {newest['id']}")
    return Asked(asked.request, asked.turn, first, newest["id"])


def restore(connection: Connection, session: UUID, rewind_: int | None, who: UUID, *, queue_bound: int) -> Asked:
    """Ask to undo a rewind: the one named by its edit's id, or the newest in force. Inside a transaction.

    Raises Refused: `session_busy` (409); `nothing_to_restore` (409) where no rewind is in force; `not_found` for an id
    that is no rewind of this session; `rewind_restored` (409) where it was undone already; `session_queue_full` (429).
    """
    _idle(connection, session)
    found = undoable(connection, session, rewind_)
    asked = _ask(connection, session, InboxKind.RESTORE, who, {"rewind": str(found["id"])}, queue_bound)
    detail = f"rewind {found['id']}, messages {found['first']} to {found['last']}"
    _audit(connection, who, "session.restore", session, detail)
    return Asked(asked.request, asked.turn, found["first"], found["last"])


def compact(connection: Connection, session: UUID, who: UUID, *, queue_bound: int) -> Asked:
    """Ask for a compaction, once: one that waits already is the answer. A running turn makes it at its next boundary,
    else its own turn does. Inside a transaction.

    Raises Refused: `nothing_to_compact` (409) where nothing has been said; `session_queue_full` (429).
    """
    one(connection, inbox.SESSION_GATE, {"session": session})
    waiting = one(connection, statements.COMPACT_WAITING, {"session": session})
    if waiting is not None:
        return Asked(waiting["id"], waiting["turn"])
    newest = one(connection, statements.NEWEST_MESSAGE, {"session": session, "before": 2**62})
    if newest is None or newest["id"] is None:
        raise Refused("nothing has been said in this session yet", code="nothing_to_compact", status=409)
    asked = _ask(connection, session, InboxKind.COMPACT, who, {}, queue_bound)
    _audit(connection, who, "session.compact", session, "")
    return asked


def cut(connection: Connection, session: UUID, to_turn: UUID) -> int:
    """The first message of a turn that stands. Raises Refused `not_found`, `turn_not_begun`, `turn_rewound`."""
    found = one(connection, statements.CUT, {"session": session, "turn": to_turn})
    if found is None:
        raise Refused("there is no such turn in this session", code="not_found", status=404)
    if found["first"] is None:
        raise Refused(
            f"nothing of turn {to_turn} ({found['status']}) stands in the transcript: rewind to a turn that has begun",
            code="turn_not_begun", status=409,
        )  # fmt: skip
    if found["rewound"]:
        raise Refused(
            "that turn was taken back already: restore it first, or name a turn that stands",
            code="turn_rewound", status=409,
        )  # fmt: skip
    return found["first"]


def undoable(connection: Connection, session: UUID, rewind_: int | None) -> DictRow:
    """The rewind to undo. Raises Refused `not_found`, `nothing_to_restore`, `rewind_restored`."""
    found = one(connection, statements.UNDOABLE, {"session": session, "rewind": rewind_})
    if found is None and rewind_ is not None:
        raise Refused("there is no such rewind in this session", code="not_found", status=404)
    if found is None or (rewind_ is None and found["restored"]):
        raise Refused("nothing is taken back in this session", code="nothing_to_restore", status=409)
    if found["restored"]:
        raise Refused("that rewind was undone already", code="rewind_restored", status=409)
    return found


def effects(connection: Connection, session: UUID, first: int, last: int) -> tuple[list[DictRow], list[DictRow]]:
    """What taking back these messages does not undo, of their turns and of what those delegated: tool runs that were
    not reads, and changes of memory; at most `MOST_TOLD` + 1 of each, oldest first. Asked before the rewind stands."""
    values = {"session": session, "first": first, "last": last, "limit": MOST_TOLD + 1}
    return every(connection, statements.EFFECTS, values), every(connection, statements.REMEMBERED, values)


def find(connection: Connection, session: UUID, request: int) -> DictRow | None:
    """A request with what came of it, or None."""
    return one(connection, statements.REQUEST, {"session": session, "request": request})


def _idle(connection: Connection, session: UUID) -> None:
    one(connection, inbox.SESSION_GATE, {"session": session})
    busy = one(connection, statements.BUSY, {"session": session})
    if busy is not None:
        raise Refused(
            f"turn {busy['id']} of this session is {busy['status']}: wait for it, or cancel it, then ask again",
            code="session_busy", status=409,
        )  # fmt: skip


def _no_child(connection: Connection, session: UUID, first: int) -> None:
    """Its report would bring back the words that are taken back."""
    alive = one(connection, statements.CHILD_ALIVE, {"session": session, "first": first})
    if alive is not None:
        raise Refused(
            f"a child of what would be taken back is not through (turn {alive['id']}, {alive['status']}): wait until "
            "its report is read, or cancel it",
            code="child_alive", status=409,
        )  # fmt: skip


def _ask(
    connection: Connection, session: UUID, kind: InboxKind, who: UUID, payload: dict[str, str], queue_bound: int
) -> Asked:
    """The row and its turn, which does not age: a person waits for it. The session's gate is held."""
    turn = uuid7()
    chore = intake.NewTurn(
        session, who, TurnClass.CHORE, None, deadline_s=DEADLINE_S, max_steps=1, id=turn, aging_s=0
    )  # fmt: skip
    intake.admit(connection, chore, on_busy=OnBusy.QUEUE, queue_bound=queue_bound)
    row = one(
        connection,
        inbox.ADD_TO_INBOX,
        {
            "session": session, "turn": turn, "dedupe_key": f"{kind}:{turn}", "kind": kind, "author": who,
            "payload": canonical.dump(payload),
        },
    )  # fmt: skip
    assert row is not None, "a key with a fresh id is not there yet"
    return Asked(row["id"], turn)


def _audit(connection: Connection, who: UUID, action: str, session: UUID, detail: str) -> None:
    run(
        connection,
        statements.AUDIT,
        {"principal": who, "action": action, "session": str(session), "detail": detail},
    )

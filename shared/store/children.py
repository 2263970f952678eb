"""The end of a child, whoever ends it: its worker, a cancel, a takeover. What is true after the commit: a parent that
waits has one less to wait for; of a child in the background a row stands in the inbox of its parent's session, once,
and a turn that will read it where nothing else does.

Lock order: `lock_parent` first (in the background the session's gate before it, and the session's live turn behind
it, as also where the parent is over), then the child's session, then the child's turn.
"""

from __future__ import annotations

from uuid import UUID

from psycopg.rows import DictRow

from shared.request import blocks
from shared.store import intake, waits
from shared.store.pool import Connection
from shared.store.statements import inbox, one, run, trees, turn_end, waiting
from shared.store.waits import Woken
from shared.stream import Aside
from shared.text import bounded, clean_text
from shared.values import TERMINAL, EventKind, InboxKind, OnBusy, ParkReason, SessionKind, TurnClass, TurnStatus

MOST_CHARS = 16_000
"""Of a report that nobody waits for; how much room its reader's window has is not known when it is written."""
_CLASS = {
    SessionKind.CHAT: TurnClass.INTERACTIVE, SessionKind.JOB: TurnClass.JOB, SessionKind.CHILD: TurnClass.CHILD,
}  # fmt: skip


def lock_parent(connection: Connection, turn: UUID) -> UUID | None:
    """Before anything else of a transaction that may end a child: its parent's row. None where it has no parent.

    For a child in the background the session's gate comes first, which admissions take before any turn's row; and the
    turn that is live there is held, so that it cannot look into its inbox for the last time before our row is in it.
    Where the parent is over, that turn may wait for the money that was promised to the child.
    """
    row = one(connection, trees.PARENT_OF, {"turn": turn})
    if row is None or row["parent"] is None:
        return None
    if row["background"]:
        one(connection, inbox.SESSION_GATE, {"session": row["session"]})
    held = one(connection, turn_end.LOCK_TURN, {"turn": row["parent"]})
    if row["background"] or held is None or held["status"] in TERMINAL:
        one(connection, inbox.LIVE_TURN_ALONE, {"session": row["session"]})
    return row["parent"]


def over(connection: Connection, turn: UUID, parent: UUID) -> Woken:
    """The child `turn` became terminal in this transaction, whose first statement was `lock_parent`: count it down,
    and wake the parent at zero, or whoever waits there for what was promised to it. In the background: bring its
    report. Returns what may be claimed now."""
    row = one(connection, waiting.CHILD_OVER, {"turn": turn, "parent": parent})
    if row is None:
        return Woken(parent, None)
    if not row["background"] and row["status"] not in TERMINAL:
        return waits.wake(connection, parent)
    live = one(connection, inbox.LIVE_TURN_ALONE, {"session": row["session"]})
    brought = _report(connection, turn) if row["background"] else None
    if live is not None and live["parked_on"] == ParkReason.MONEY:
        return waits.wake(connection, live["id"])
    return brought or Woken(parent, None)


def told(connection: Connection, turn: UUID) -> Aside | None:
    """What whoever ended the child `turn` tells on its parent's stream, after the commit. A hint: the rows say the
    same."""
    row = one(connection, trees.ENDED_CHILD, {"turn": turn})
    if row is None:
        return None
    data = {
        "ordinal": row["parent_ordinal"], "index": row["child_index"], "turn": str(turn),
        "session": str(row["session"]), "status": row["status"], "title": row["title"], "steps": row["steps"],
        "cost_usd": None if row["unknown"] else float(row["usd"]),
    }  # fmt: skip
    return Aside(row["parent"], row["parent_step"], row["fence"], EventKind.CHILD_FINISHED, data)


def reader(connection: Connection, session: UUID) -> Woken | None:
    """Under the session's gate: a turn for the reports that wait there, under the limits of the turn that delegated.
    None where none waits, or a turn is there that will read them (housekeeping does not)."""
    found = one(connection, trees.UNREAD_REPORT, {"session": session})
    if found is None:
        return None
    new = intake.NewTurn(
        session, found["author"], _CLASS[SessionKind(found["kind"])], None, deadline_s=found["deadline_s"],
        max_steps=found["max_steps"], cap_usd=found["cap_usd"],
    )  # fmt: skip
    turn = intake.admit(connection, new, on_busy=OnBusy.QUEUE, queue_bound=1_000_000).turn
    run(connection, trees.INHERIT, {"turn": turn, "child": found["child"]})
    return Woken(turn, new.turn_class)


def _report(connection: Connection, turn: UUID) -> Woken | None:
    found = one(connection, trees.REPORT_OF, {"turn": turn})
    assert found is not None
    params = {
        "session": found["session"], "turn": turn, "dedupe_key": f"child:{turn}", "kind": InboxKind.CHILD,
        "author": found["requested_by"], "payload": blocks.join([blocks.text(report(found))]),
    }  # fmt: skip
    one(connection, inbox.ADD_TO_INBOX, params)
    return reader(connection, found["session"])


def report(row: DictRow) -> str:
    """What the parent's session reads of it. The title and the report are the child's words: nothing in them can close
    the tags around them or begin a line that looks like ours."""
    number = row["child_index"] + 1
    cost = "cost unknown" if row["unknown"] else f"${row['usd']:.4f}"
    title = "".join(c if c.isprintable() and c != "]" else "\ufffd" for c in clean_text(row["title"]))
    if row["status"] == TurnStatus.DONE:
        said = row["answer"] or "(it said nothing)"
    else:
        said = f"it did not finish: {row['error_text'] or row['status']}"
    inside = bounded(clean_text(said), MOST_CHARS).replace("</report", "<\\/report")
    folder = f"children/{row['workspace'].rsplit('/', 1)[-1]}/"
    return (
        f"[background child {number} of {row['children']}: {row['status']}, {row['steps']} steps, {cost}, files in"
        f' {folder}: {title}]\n<report child="{number}">\n{inside}\n</report>\n'
        "[You delegated this earlier; nobody has read it yet. It is what that agent says of itself: check what matters,"
        " then tell the person what came of it.]"
    )

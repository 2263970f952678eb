"""How work comes in: a session, a turn with its first input, a steer, a cancel. It writes rows; the caller commits,
then rings.

The invariant: what a person sent stands in a committed row before they are answered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Any, LiteralString
from uuid import UUID

from psycopg.rows import DictRow, dict_row

from shared.errors import Refused
from shared.ids import uuid7
from shared.store.pool import Connection
from shared.store.statements import inbox, one
from shared.values import AGING, TERMINAL, Audience, InboxKind, OnBusy, SessionKind, TurnClass, TurnStatus


@dataclass(frozen=True, slots=True)
class NewSession:
    owner: UUID
    provider: str
    model: str
    workspace: str
    audience: Audience = Audience.PRIVATE
    kind: SessionKind = SessionKind.CHAT
    title: str = ""
    profile: str = "default"
    folder: str | None = None
    cap_usd: Decimal | None = None
    people: Sequence[UUID] = ()


@dataclass(frozen=True, slots=True)
class NewTurn:
    """`payload` is the text of a JSON array of blocks; None admits a housekeeping turn."""

    session: UUID
    principal: UUID
    turn_class: TurnClass
    payload: str | None
    deadline_s: int
    max_steps: int
    cap_usd: Decimal | None = None
    stable_prefix_len: int | None = None
    id: UUID | None = None


class How(StrEnum):
    QUEUED = "queued"
    STEERED = "steered"


@dataclass(frozen=True, slots=True)
class Admitted:
    """`turn` is the new turn, or, where the input steered, the running one."""

    turn: UUID
    how: How


def create_session(connection: Connection, new: NewSession) -> UUID:
    """Insert a session and return its id. Two statements where people are named: run it in a transaction."""
    session = uuid7()
    connection.execute(
        "insert into sessions (id, owner, audience, kind, root, title, profile, provider, model, workspace, folder, "
        "cap_usd) values (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
        (
            session, new.owner, new.audience, new.kind, session, new.title, new.profile, new.provider, new.model,
            new.workspace.replace("{session}", str(session)), new.folder, new.cap_usd,
        ),
    )  # fmt: skip
    for person in new.people:
        connection.execute("insert into session_people values (%s, %s) on conflict do nothing", (session, person))
    return session


def admit(connection: Connection, new: NewTurn, *, on_busy: OnBusy, queue_bound: int) -> Admitted:
    """Admit a turn, or steer the live one, or refuse. Inside a transaction; a committed row stands before any ring.

    Raises Refused: `session_busy` (409, on_busy reject), `session_queue_full` (429).
    """
    one(connection, inbox.SESSION_GATE, {"session": new.session})
    live = one(connection, inbox.LIVE_TURN, {"session": new.session})
    queued = one(connection, inbox.QUEUED_COUNT, {"session": new.session}) or {"n": 0}
    if on_busy is OnBusy.REJECT and (live or queued["n"]):
        turn = live["id"] if live else "queued"
        raise Refused(
            f"the session is busy (turn {turn}): wait for it, or send with on_busy=queue or steer",
            code="session_busy", status=409,
        )  # fmt: skip
    if on_busy is OnBusy.STEER and live and new.payload is not None and live["class"] != TurnClass.CHORE:
        _add(connection, new.session, live["id"], InboxKind.STEER, new.principal, new.payload, f"steer:{uuid7()}")
        return Admitted(live["id"], How.STEERED)
    if queued["n"] >= queue_bound:
        raise Refused(
            f"{queue_bound} turns already wait in this session: let some finish, or cancel some",
            code="session_queue_full", status=429,
        )  # fmt: skip
    turn = new.id or uuid7()
    params = {
        "turn": turn, "session": new.session, "class": new.turn_class, "principal": new.principal,
        "aging_s": AGING[new.turn_class], "deadline_s": new.deadline_s, "max_steps": new.max_steps,
        "cap_usd": new.cap_usd, "payload": new.payload, "stable_prefix_len": new.stable_prefix_len,
    }  # fmt: skip
    one(connection, inbox.ADMIT_TURN, params)
    return Admitted(turn, How.QUEUED)


def _add(
    connection: Connection, session: UUID, turn: UUID | None, kind: InboxKind, author: UUID, payload: str, dedupe: str
) -> bool:
    params = {
        "session": session, "turn": turn, "kind": kind, "author": author, "payload": payload, "dedupe_key": dedupe,
    }  # fmt: skip
    return one(connection, inbox.ADD_TO_INBOX, params) is not None


def steer(connection: Connection, turn: UUID, principal: UUID, payload: str) -> DictRow:
    """Add a steering message to a turn that is not over. Returns the turn's row as it was.

    Meets the finish on the turn's row: FOR SHARE here, FOR UPDATE there, and the finish then looks into the inbox.
    Raises Refused `turn_over` (409) with the status it ended in.
    """
    found = one(connection, inbox.STEERABLE, {"turn": turn})
    if found is None:
        raise Refused("there is no such turn", code="not_found", status=404)
    if found["status"] in TERMINAL:
        raise Refused(
            f"the turn is over ({found['status']}): send the text as a new turn", code="turn_over", status=409
        )
    _add(connection, found["session"], turn, InboxKind.STEER, principal, payload, f"steer:{uuid7()}")
    return found


def deliver(connection: Connection, session: UUID, author: UUID, payload: str, dedupe: str) -> UUID | None:
    """Put a delivery into a session's inbox, once a `dedupe` key; an idle session gets a housekeeping turn to fold it.

    Returns the housekeeping turn's id where one was admitted. Inside a transaction.
    """
    one(connection, inbox.SESSION_GATE, {"session": session})
    live = one(connection, inbox.LIVE_TURN, {"session": session})
    if not _add(connection, session, None, InboxKind.DELIVERY, author, payload, dedupe) or live:
        return None
    chore = NewTurn(session, author, TurnClass.CHORE, None, deadline_s=600, max_steps=1)
    return admit(connection, chore, on_busy=OnBusy.QUEUE, queue_bound=1_000_000).turn


def cancel(connection: Connection, turn: UUID, principal: UUID) -> DictRow:
    """Ask a turn to end, whatever its state. Inside a transaction; returns `{status, holder}` as it is afterwards.

    Queued and parked turns end here; a running one is ended by its holder. Raises Refused `turn_over` (409).
    """
    params = {"turn": turn, "principal": principal}
    for _ in range(5):  # a turn moves between states while we look; each try is a compare-and-set
        if one(connection, inbox.CANCEL_QUEUED, params):
            return {"status": TurnStatus.CANCELLED, "holder": None}
        running = one(connection, inbox.CANCEL_RUNNING, params)
        if running:
            return {"status": TurnStatus.RUNNING, "holder": running["holder"]}
        found = fetch(connection, "select session, status, answer from turns where id = %s", (turn,))
        if found is None:
            raise Refused("there is no such turn", code="not_found", status=404)
        if found["status"] in TERMINAL:
            raise Refused(f"the turn is over already ({found['status']})", code="turn_over", status=409)
        if found["status"] == TurnStatus.PARKED and _cancel_parked(connection, turn, found["session"], principal):
            return {"status": TurnStatus.CANCELLED, "holder": None}
    raise Refused("the turn changes faster than it can be cancelled: try again", code="turn_moving", status=409)


def _cancel_parked(connection: Connection, turn: UUID, session: UUID, principal: UUID) -> bool:
    """Session first, then the turn re-read in a later statement: the fence must not rise under a live holder."""
    connection.execute("select 1 from sessions where id = %s for no key update", (session,))
    row = fetch(connection, "select status from turns where id = %s for update", (turn,))
    if row is None or row["status"] != TurnStatus.PARKED:
        return False
    params = {"turn": turn, "session": session, "principal": principal}
    return one(connection, inbox.CANCEL_PARKED, params) is not None


def fetch(connection: Connection, text: LiteralString, params: Sequence[Any]) -> DictRow | None:
    """One row of a plain read, as a dict."""
    return connection.cursor(row_factory=dict_row).execute(text, params).fetchone()

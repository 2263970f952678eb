"""How work comes in: a session, a turn with its first input, a steer. It writes rows; the caller commits,
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
from shared.request import blocks
from shared.store import waits
from shared.store.pool import Connection
from shared.store.statements import inbox, one
from shared.store.waits import Woken
from shared.values import AGING, TERMINAL, Audience, InboxKind, OnBusy, ParkReason, SessionKind, TurnClass


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
    woken: Woken | None = None


@dataclass(frozen=True, slots=True)
class Steered:
    """`answered`: it was taken as the answer of a person that the turn slept for; `woken` may be rung for."""

    answered: bool
    woken: Woken | None = None


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
    locked = inbox.LIVE_TURN_ALONE if on_busy is OnBusy.STEER else inbox.LIVE_TURN
    live = one(connection, locked, {"session": new.session})
    queued = one(connection, inbox.QUEUED_COUNT, {"session": new.session}) or {"n": 0}
    if on_busy is OnBusy.REJECT and (live or queued["n"]):
        turn = live["id"] if live else "queued"
        raise Refused(
            f"the session is busy (turn {turn}): wait for it, or send with on_busy=queue or steer",
            code="session_busy", status=409,
        )  # fmt: skip
    if on_busy is OnBusy.STEER and live and new.payload is not None and live["class"] != TurnClass.CHORE:
        said = _said(connection, new.session, live["id"], new.principal, new.payload)
        return Admitted(live["id"], How.STEERED, said.woken)
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


def steer(connection: Connection, turn: UUID, principal: UUID, payload: str) -> Steered:
    """Say something to a turn that is not over. One that sleeps for a person takes it as the person's answer: to its
    question, or as a no to what it asked to be allowed; any other folds it at its next boundary.

    Meets the finish and the park on the turn's row: both lock it, and look at what is here in a later statement.
    Raises Refused `turn_over` (409) with the status it ended in.
    """
    found = one(connection, inbox.STEERABLE, {"turn": turn})
    if found is None:
        raise Refused("there is no such turn", code="not_found", status=404)
    if found["status"] in TERMINAL:
        raise Refused(
            f"the turn is over ({found['status']}): send the text as a new turn", code="turn_over", status=409
        )
    return _said(connection, found["session"], turn, principal, payload)


def _said(connection: Connection, session: UUID, turn: UUID, principal: UUID, payload: str) -> Steered:
    """The turn's row is locked and not terminal."""
    row = one(connection, inbox.PEEK, {"turn": turn})
    if row is not None and row["parked_on"] in (ParkReason.APPROVAL, ParkReason.CLARIFY):
        text = "\n".join(blocks.text_of(block) for block in blocks.split(payload))
        if waits.answer(connection, turn, principal, text):
            return Steered(answered=True, woken=waits.wake(connection, turn))
    _add(connection, session, turn, InboxKind.STEER, principal, payload, f"steer:{uuid7()}")
    return Steered(answered=False)


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


def fetch(connection: Connection, text: LiteralString, params: Sequence[Any]) -> DictRow | None:
    """One row of a plain read, as a dict."""
    return connection.cursor(row_factory=dict_row).execute(text, params).fetchone()

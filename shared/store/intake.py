"""How work comes in: a session, a turn with its first input, a steer. It writes rows; the caller commits,
then rings.

The invariant: what a person sent stands in a committed row before they are answered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Any, LiteralString
from uuid import UUID

from psycopg.rows import DictRow, dict_row

from shared import titles
from shared.errors import Refused
from shared.ids import uuid7
from shared.request import blocks
from shared.store import waits
from shared.store.pool import Connection
from shared.store.statements import every, inbox, one
from shared.store.waits import Woken
from shared.values import (
    AGING,
    ROLE_RANK,
    TERMINAL,
    Audience,
    InboxKind,
    OnBusy,
    ParkReason,
    Role,
    SessionKind,
    TurnClass,
)


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
    keep_warm: bool = False


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
    job: UUID | None = None
    shared_key: str | None = None
    aging_s: int | None = None
    """How far it stands behind a question; None: as its class does."""


class How(StrEnum):
    QUEUED = "queued"
    STEERED = "steered"


@dataclass(frozen=True, slots=True)
class Admitted:
    """`turn` is the new turn, or, where the input steered, the one that it steered; `woken` may be rung for."""

    turn: UUID
    how: How
    woken: Woken | None = None


MOST_STEERING = 256 * 1024
"""Bytes. What is said to a turn at work goes into its window whether it fits or not; a long text is a turn's input."""
MOST_UNREAD = 50
"""How much may be said to a turn before it has read any of it."""


def create_session(connection: Connection, new: NewSession) -> UUID:
    """Insert a session and return its id. Two statements where people are named: run it in a transaction."""
    session = uuid7()
    connection.execute(
        "insert into sessions (id, owner, audience, kind, root, title, profile, provider, model, workspace, folder, "
        "cap_usd, keep_warm) values (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
        (
            session, new.owner, new.audience, new.kind, session, new.title, new.profile, new.provider, new.model,
            new.workspace.replace("{session}", str(session)), new.folder, new.cap_usd,
            new.keep_warm,
        ),
    )  # fmt: skip
    for person in new.people:
        connection.execute("insert into session_people values (%s, %s) on conflict do nothing", (session, person))
    return session


def admit(connection: Connection, new: NewTurn, *, on_busy: OnBusy, queue_bound: int) -> Admitted:
    """Admit a turn, or steer the live one, or refuse. Inside a transaction; a committed row stands before any ring.

    Raises Refused: `session_busy` (409, on_busy reject), `session_queue_full` (429), and what `steer` raises.
    """
    session = {"session": new.session}
    one(connection, inbox.SESSION_GATE, session)
    if on_busy is OnBusy.STEER:
        # In this order: a turn that is claimed between the two is found by the second.
        started = one(connection, inbox.STARTED_TURN_ALONE, session)
        live = started or one(connection, inbox.LIVE_TURN_ALONE, session)
        said = None if live is None else _said(connection, live["id"], new)
        return said or _queue(connection, new, queue_bound)
    if on_busy is OnBusy.REJECT:
        _refuse_busy(connection, session)
    return _queue(connection, new, queue_bound)


def _refuse_busy(connection: Connection, session: dict[str, UUID]) -> None:
    live = one(connection, inbox.LIVE_TURN, session)
    queued = one(connection, inbox.QUEUED_COUNT, session) or {"n": 0}
    if live or queued["n"]:
        turn = live["id"] if live else "queued"
        raise Refused(
            f"the session is busy (turn {turn}): wait for it, or send with on_busy=queue or steer",
            code="session_busy", status=409,
        )  # fmt: skip


def _queue(connection: Connection, new: NewTurn, queue_bound: int) -> Admitted:
    """A turn of its own, behind those that wait. The session's gate is held."""
    queued = one(connection, inbox.QUEUED_COUNT, {"session": new.session}) or {"n": 0}
    if queued["n"] >= queue_bound:
        raise Refused(
            f"{queue_bound} turns already wait in this session: let some finish, or cancel some",
            code="session_queue_full", status=429,
        )  # fmt: skip
    turn = new.id or uuid7()
    params = {
        "turn": turn, "session": new.session, "class": new.turn_class, "principal": new.principal,
        "aging_s": AGING[new.turn_class] if new.aging_s is None else new.aging_s,
        "deadline_s": new.deadline_s, "max_steps": new.max_steps,
        "cap_usd": new.cap_usd, "payload": new.payload, "stable_prefix_len": new.stable_prefix_len,
        "job": new.job, "shared_key": new.shared_key,
        "title": titles.first_line(new.payload) if new.turn_class is TurnClass.INTERACTIVE else "",
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


def steer(connection: Connection, turn: UUID, new: NewTurn, *, queue_bound: int) -> Admitted:
    """Say `new.payload` to a turn that is not over. One that sleeps for a person takes it as the person's answer: to
    its question, or as a no to what it asked to be allowed; any other folds it at its next boundary, and a call that
    is out is cut for it. Who may not lend that turn their word gets a turn of their own, `new`.

    Meets the finish and the park on the turn's row: both lock it, and look at what is here in a later statement.
    Raises Refused `not_found`, `turn_over` (409) with the status it ended in, `steer_too_large` (413),
    `steers_unread` (429), `session_queue_full` (429).
    """
    one(connection, inbox.SESSION_GATE, {"session": new.session})
    found = one(connection, inbox.STEERABLE, {"turn": turn})
    if found is None or found["session"] != new.session:
        raise Refused("there is no such turn", code="not_found", status=404)
    if found["status"] in TERMINAL:
        raise Refused(
            f"the turn is over ({found['status']}): send the text as a new turn", code="turn_over", status=409
        )
    return _said(connection, turn, new) or _queue(connection, new, queue_bound)


def _said(connection: Connection, turn: UUID, new: NewTurn) -> Admitted | None:
    """The turn's row is locked and not terminal. None where these words are not for this turn."""
    row = one(connection, inbox.PEEK, {"turn": turn})
    if new.payload is None or row is None or row["class"] == TurnClass.CHORE:
        return None
    speaker = {"turn": turn, "principal": new.principal}
    if not _may_steer(new.principal, every(connection, inbox.VOICES, speaker)):
        return None
    _bounded(connection, turn, new)
    one(connection, inbox.CONTRIBUTE, speaker)
    if row["parked_on"] in (ParkReason.APPROVAL, ParkReason.CLARIFY):
        text = "\n".join(blocks.text_of(block) for block in blocks.split(new.payload))
        if waits.answer(connection, turn, new.principal, text):
            return Admitted(turn, How.STEERED, waits.wake(connection, turn))
    # What is said before a turn begins is a part of its input, which no turn before it reads.
    kind = InboxKind.INPUT if row["started_at"] is None else InboxKind.STEER
    _add(connection, new.session, turn, kind, new.principal, new.payload, f"{InboxKind.STEER}:{uuid7()}")
    return Admitted(turn, How.STEERED)


def _may_steer(speaker: UUID, voices: Sequence[DictRow]) -> bool:
    """A turn has the least authority of all whose words it carries: a weaker word would take from it what its people
    may do, so it is spoken to by equals and by those above. Who is not found is nobody."""
    authority = min((ROLE_RANK[Role(row["role"])] for row in voices if row["heard"]), default=None)
    own = next((ROLE_RANK[Role(row["role"])] for row in voices if row["id"] == speaker), None)
    return authority is not None and own is not None and own >= authority


def _bounded(connection: Connection, turn: UUID, new: NewTurn) -> None:
    size = len((new.payload or "").encode("utf-8", "surrogatepass"))
    if size > MOST_STEERING:
        raise Refused(
            f"the text has {size:,} bytes and what is said to a turn at work may have {MOST_STEERING:,}: "
            "send it as a turn of its own (on_busy=queue), or put it into a file",
            code="steer_too_large", status=413,
        )  # fmt: skip
    unread = one(connection, inbox.UNREAD_OF_TURN, {"session": new.session, "turn": turn}) or {"n": 0}
    if unread["n"] >= MOST_UNREAD:
        raise Refused(
            f"the turn has {unread['n']} messages to read already: wait until it has read them",
            code="steers_unread", status=429,
        )  # fmt: skip


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


def fetch(connection: Connection, text: LiteralString, params: Sequence[Any] | Mapping[str, Any]) -> DictRow | None:
    """One row of a plain read, as a dict."""
    return connection.cursor(row_factory=dict_row).execute(text, params).fetchone()

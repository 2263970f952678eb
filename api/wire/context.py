"""Bodies of answers about what the model sees of a session, and of what is asked of its transcript."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from api.wire.shown import Failure, Page, Shown, Turn


class TranscriptRequest(Shown):
    """A rewind, restore or compaction that was asked for. `status`: `waiting`, `done`, `skipped` (a compaction that
    would have gained too little), `refused`, `cancelled`, `failed`; `turn_id` is the housekeeping turn that carries it
    out; `first` and `last` are the messages concerned, `edit` what a restore names as its `rewind`. Tokens are of the
    whole prompt, as projected from the last bill."""

    id: str
    kind: str
    status: str
    turn_id: UUID
    asked_by: str
    edit: str | None
    first: str | None
    last: str | None
    tokens_before: int | None
    tokens_after: int | None
    note: str | None
    error: Failure | None
    created_at: datetime
    done_at: datetime | None


class Effect(Shown):
    """A tool run that was no read, of a turn that is taken back or of what it delegated: a rewind does not undo it.
    `status` `unknown`: nobody knows whether it happened. `arguments` are cut at 300 characters."""

    turn_id: UUID
    session_id: UUID
    step: int
    ordinal: int
    tool: str
    arguments: str
    status: str
    at: datetime | None


class Remembered(Shown):
    """A change of memory by a turn that is taken back: it stays until somebody changes it."""

    scope: str
    revision: int
    action: str
    taken: str | None
    put: str | None
    at: datetime


class RequestTaken(Shown):
    """What a POST of a rewind, restore or compaction is answered. `more`: there are effects or changes of memory beyond
    those listed."""

    request: TranscriptRequest
    turn: Turn
    events: str
    effects: list[Effect]
    memory: list[Remembered]
    more: bool


class Reduction(Shown):
    """A decision about the session's past, other than to leave it as it is, with what it was decided by."""

    id: str
    turn_id: UUID
    step: int
    decision: str
    cause: str
    tokens_before: int | None
    tokens_after: int | None
    first_edit: str | None
    arithmetic: dict[str, Any]
    created_at: datetime


class ReductionPage(Page):
    items: list[Reduction]


class FloorPart(Shown):
    """`name`: `tools`, `stable`, `context`, `volatile`."""

    name: str
    tokens: int


class Floor(Shown):
    """What no reduction can make smaller. `over`: it alone reaches the line at which the past is reduced."""

    tokens: int
    share: float
    over: bool
    parts: list[FloorPart]


class StandingSummary(Shown):
    edit: str
    first: str
    last: str
    tokens: int
    text: str
    cause: str
    tokens_before: int | None
    created_at: datetime


class StandingStub(Shown):
    message: str
    block: int
    text: str


class StandingRewind(Shown):
    edit: str
    first: str
    last: str
    messages: int
    created_at: datetime


class Counted(Shown):
    live: int
    summarised: int
    rewound: int


class Context(Shown):
    """What the model sees of a session now, in tokens as projected from the last bill. `line`: where the past is
    reduced, whatever the meters say; `advice`: sentences for the person, where something is to be done."""

    session_id: UUID
    model: str
    window: int
    window_known: bool
    window_source: str
    line: int
    tokens: int
    estimate: int
    calibrated: bool
    floor: Floor
    messages: Counted
    message_tokens: int
    summaries: list[StandingSummary]
    stubs: int
    newest_stubs: list[StandingStub]
    rewinds: list[StandingRewind]
    advice: list[str]

"""Bodies of answers."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, Field

from api.wire.cache import Breaker, Cache, Calibration, Meters


class Shown(BaseModel):
    """Base of what is shown."""


class Fault(Shown):
    field: str
    fault: str


class Problem(Shown):
    """RFC 9457. `code` is stable; `detail` is a sentence a person can act on."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    errors: list[Fault] = []


class Failure(Shown):
    code: str
    message: str


class Tokens(Shown):
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0


class Wanted(Shown):
    """A call that waits for a person's decision, of the turn itself or of what it waits for, at any depth."""

    id: UUID
    turn_id: UUID
    tool: str
    arguments: str | None
    role: str
    four_eyes: bool
    rule: str
    why: str | None
    created_at: datetime
    expires_at: datetime | None


class Question(Shown):
    """What the model asks the person: the next thing said to that turn is the answer."""

    id: UUID
    turn_id: UUID
    text: str
    created_at: datetime
    expires_at: datetime | None


class Lacking(Shown):
    """A cap that has no room for the turn's next call, which may cost `needs_usd`. `id` is of the turn or session whose
    cap it is; with `enough_usd` the call fits. `promised_usd` is held for children that are not over."""

    cap: Literal["turn", "session"]
    id: UUID
    cap_usd: float
    spent_usd: float
    promised_usd: float
    left_usd: float
    needs_usd: float
    enough_usd: float


class LackingBudget(Shown):
    """As `Lacking`, of a cap that many turns share; `drawn_usd` is held by those that run."""

    scope: Literal["job", "person", "team"]
    subject: str
    period: Literal["day", "month", "ever"]
    window: str
    cap_usd: float
    spent_usd: float
    drawn_usd: float
    left_usd: float
    needs_usd: float
    enough_usd: float


class Waiting(Shown):
    """Why a turn is not running. `on`: `worker`, `session` (an earlier turn of it), or what it is parked on."""

    on: str
    since: datetime
    until: datetime | None
    approvals: list[Wanted] = []
    questions: list[Question] = []
    money: list[Lacking] = []
    budgets: list[LackingBudget] = []


class Turn(Shown):
    id: UUID
    session_id: UUID
    status: str
    turn_class: str = Field(serialization_alias="class")
    requested_by: str
    parked_on: str | None
    waiting: Waiting | None
    answer: str | None
    error: Failure | None
    steps_used: int
    steps_refunded: int
    max_steps: int
    cost_usd: float | None
    children_cost_usd: float | None
    """Of its children that are over, theirs included; it counts in the turn's cap beside `cost_usd`."""
    parent_id: UUID | None
    unknown_effects: int = 0
    """Tool runs of which nobody knows whether they happened: their worker was lost while they ran."""
    rewound: bool = False
    """It was taken back: the model does not see it."""
    cap_usd: float | None
    tokens: Tokens
    attempts: int
    takeovers: int
    cancel_requested_at: datetime | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    wake_at: datetime | None
    deadline_at: datetime | None


class TurnStarted(Shown):
    turn: Turn
    events: str
    how: str


class TurnHolder(Shown):
    turn: Turn


class Session(Shown):
    id: UUID
    title: str
    title_by: Literal["first_line", "model", "person"] | None
    """Who wrote it: it is the first line that was said, or a model's or a person's words; null where there is none."""
    owner: str
    mine: bool
    audience: str
    kind: str
    profile: str
    provider: str
    model: str
    folder: str | None
    status: str
    turn_id: UUID | None
    queued: int
    unknown_effects: int = 0
    """As of a turn, over all turns of the session."""
    cost_usd: float | None
    known_usd: float
    reserved_usd: float
    cap_usd: float | None
    cache: Cache
    meters: Meters
    calibration: Calibration
    breaker: Breaker
    created_at: datetime


class Child(Shown):
    """A turn that works for another: `parent_id`, `step` and `ordinal` name the call that made it, `number` its place
    there. `cost_usd` is its own and its children's."""

    turn_id: UUID
    session_id: UUID
    parent_id: UUID
    step: int
    ordinal: int
    number: int
    title: str
    status: str
    background: bool
    steps_used: int
    cost_usd: float | None
    unknown_effects: int = 0
    created_at: datetime
    finished_at: datetime | None


class Page(Shown):
    items: list[Any]
    next: str | None = None


class ChildPage(Page):
    items: list[Child]


class SessionPage(Page):
    items: list[Session]


class CallTokens(Tokens):
    cache_write_5m: int = 0
    cache_write_1h: int = 0
    reasoning: int = 0


class Call(Shown):
    id: UUID
    step: int
    purpose: str
    status: str
    provider: str
    model: str
    tokens: CallTokens | None
    cost_usd: float | None
    cost_assumed: bool
    reserved_usd: float
    rate_source: str | None
    refund: str | None
    error: Failure | None
    stop_reason: str | None
    request_id: str | None
    first_token_ms: int | None
    estimate: int
    max_tokens: int
    block_count: int
    digest: str
    created_at: datetime
    ended_at: datetime | None


class CallPage(Page):
    items: list[Call]


class Approval(Shown):
    """`cut`: the arguments are longer than what is shown. `may_decide`: by the caller, now. Turn and session are null
    for who may decide and may not see them. `rule` and `why`: what of the call is asked about; `may_cover`: what a yes
    beyond this call would cover, each time for the same principal."""

    id: UUID
    turn_id: UUID | None
    session_id: UUID | None
    session_title: str | None
    step: int
    ordinal: int
    tool: str
    digest: str
    arguments: str | None
    cut: bool
    role: str
    four_eyes: bool
    requested_by: str | None
    status: str
    may_decide: bool
    created_at: datetime
    expires_at: datetime | None
    decided_at: datetime | None
    decided_by: str | None
    note: str | None
    rule: str = "settings"
    why: str | None = None
    may_cover: list[str] = []
    scope: str | None = None


class ApprovalPage(Page):
    items: list[Approval]


class Stop(Shown):
    id: UUID
    scope: str
    subject: str | None
    name: str | None
    cancel: bool
    note: str
    placed_by: str
    created_at: datetime
    lifted_at: datetime | None
    lifted_by: str | None


class StopPage(Page):
    items: list[Stop]


class ClockMoved(Shown):
    now: datetime
    offset_s: float
    target_s: float


class Delivery(Shown):
    kind: str
    target: str
    status: str
    evidence: str | None
    error_text: str | None


class Run(Shown):
    """One due instant of a job, and what came of it. `cost_usd` null: unknown, or there is no turn yet."""

    id: UUID
    job_id: UUID
    instant: datetime
    manual: bool
    status: str
    turn_id: UUID | None
    session_id: UUID | None
    cost_usd: float | None
    unknown_effects: int = 0
    error_code: str | None
    error_text: str | None
    deliveries: list[Delivery]
    created_at: datetime
    ended_at: datetime | None


class RunPage(Page):
    items: list[Run]


class DueAt(Shown):
    local: str
    utc: str


class Explained(Shown):
    text: str
    cron: str
    zone: str
    instants: list[DueAt]


class LedgerRow(Shown):
    """`cost_usd` is null where any call of the row has an unknown cost; `known_usd` is the sum of the others."""

    key: str | None
    label: str
    calls: int
    open_calls: int
    unknown_calls: int
    assumed_calls: int
    cost_usd: float | None
    known_usd: float
    reserved_usd: float
    tokens: Tokens
    cache_write_5m: int
    cache_write_1h: int


class Ledger(Page):
    items: list[LedgerRow]
    by: str
    total: LedgerRow

"""Shared money as it is asked for and shown: caps of a job, a person, the team, and their windows."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from api.wire.asked import Asked
from api.wire.shown import LedgerRow, Page, Shown

Scope = Literal["job", "person", "team"]
Period = Literal["day", "month", "ever"]
Cap = Annotated[Decimal, Field(ge=0, le=1_000_000, max_digits=20, decimal_places=12, allow_inf_nan=False)]


class BudgetAsked(Asked):
    cap_usd: Cap | None = Field(description="0 lets nothing be spent, null takes the cap away")
    was_usd: Cap | None = Field(
        default=None,
        description="Only if that is the cap now (null: none); 409 `cap_changed` where somebody was faster",
    )


class Budget(Shown):
    """A shared cap and its window as it stands. `subject` `*` is everybody who has no cap of their own; such a row has
    no window. `drawn_usd` is held by turns that run, and comes back as far as they do not use it."""

    scope: Scope
    subject: str
    name: str
    period: Period
    window: str | None
    until: datetime | None
    cap_usd: float | None
    spent_usd: float
    drawn_usd: float
    left_usd: float
    percent: int


class BudgetPage(Page):
    items: list[Budget]
    zone: str
    """In which days and months begin."""


class UsageRow(Shown):
    """All calls of one day (UTC) to one model: what a provider's usage export is compared with."""

    day: str
    provider: str
    model: str
    spent: LedgerRow


class UsagePage(Page):
    items: list[UsageRow]


class Answering(Shown):
    """A model at a provider, and what the prompt of the next call costs with it. `anew`: none of it is in that one's
    cache. `cost_usd` null: its price is not known."""

    provider: str
    model: str
    anew: bool
    cost_usd: float | None


class Switch(Shown):
    """What another model would cost a session at its next call; nothing has changed. `tokens` of the conversation, as
    the model switched to counts them, about; 0 where it has not begun. `changes`: false where that one answers now."""

    session_id: UUID
    changes: bool
    tokens: int
    stays: Answering
    to: Answering
    warm_until: datetime | None

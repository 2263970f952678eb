"""Jobs as they are shown."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from pydantic import Field

from api.wire.shown import Page, Shown


class Job(Shown):
    id: UUID
    name: str
    owner: str
    mine: bool
    cron: str
    zone: str
    prompt: str
    tail: str
    workspace: str | None
    folder: str | None
    profile: str
    model: str | None
    cap_usd: float | None
    max_steps: int | None
    deadline_s: int
    audience: str
    deliver_session: UUID | None
    deliver_file: str | None
    paused: bool
    paused_why: str | None = Field(description="Which of its breakers paused it; null where a person did")
    stop_same: int | None = Field(description="It is paused once so many of its runs in a row have said the same")
    stop_dearer: float | None = Field(
        description="It is paused once its last five runs cost so many times as much as the five before"
    )
    next_at: datetime | None
    created_at: datetime
    updated_at: datetime


class JobPage(Page):
    items: list[Job]

"""The gate and its grants as they go over the wire."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import Field

from api.wire.asked import Asked
from api.wire.fields import Note, ProfileName
from api.wire.shown import Page, Shown


class GateAsked(Asked):
    command: Annotated[str, Field(max_length=1_000_000, description="A command line for a shell; it is not run")]
    profile: ProfileName = "default"
    job: bool = Field(default=False, description="As a job of this profile would be judged")
    session: UUID | None = Field(default=None, description="With what was granted to the caller in it")


class GateHit(Shown):
    rule: str
    decision: str
    why: str
    what: str


class GateSaid(Shown):
    """`understood`: the programs that would start, in order. `patterns`: what a grant must cover, each, for it to be
    allowed without asking; empty where no grant can. `hits`: every rule that was met."""

    decision: str
    rule: str
    why: str
    understood: list[str]
    patterns: list[str]
    hits: list[GateHit]


class Grant(Shown):
    """`scope` session or always: for the calls of `principal` that meet `patterns` alone. `bypass`: of one session,
    for a time, whatever only a pattern asks about."""

    id: UUID
    scope: str
    principal: str | None
    session_id: UUID | None
    patterns: list[str]
    approval: UUID | None
    granted_by: str
    note: str | None
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    revoked_by: str | None
    stands: bool


class GrantPage(Page):
    items: list[Grant]


class BypassAsked(Asked):
    minutes: int = Field(strict=True, ge=1, le=480)
    note: Note = Field(description="Why; it stands in the audit")

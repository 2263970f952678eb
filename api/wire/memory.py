"""Bodies about what is remembered."""

from __future__ import annotations

from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import Field

from api.wire.asked import Asked
from api.wire.fields import Words
from api.wire.shown import Page, Shown
from shared.memory import MOST_ENTRIES


class MemoryAsked(Asked):
    entries: list[Words] = Field(max_length=MOST_ENTRIES, description="All of them; blank ones are dropped")
    revision: int | None = Field(
        default=None, strict=True, ge=0, le=2**31 - 1, description="The one that you read; or the header If-Match"
    )


class IncludeAsked(Asked):
    scope: Literal["me", "profile"]
    entries: list[int] = Field(min_length=1, max_length=MOST_ENTRIES, description="Which, counted from 1")
    revision: int = Field(strict=True, ge=0, le=2**31 - 1, description="The one that you read")


class Suspect(Shown):
    """An entry that no prompt holds, because it reads like an instruction."""

    entry: int
    why: str


class Memory(Shown):
    scope: str
    revision: int
    entries: list[str]
    left_out: list[Suspect]
    characters: int
    limit: int
    updated_at: datetime | None
    updated_by: str | None


class Revision(Shown):
    """`turn_id` is the turn of an agent that made it, for who may see that turn; `by_agent` tells the others."""

    revision: int
    action: str
    taken: str | list[str] | None
    put: str | list[str] | None
    entries: list[str]
    author: str
    by_agent: bool
    turn_id: UUID | None
    created_at: datetime


class RevisionPage(Page):
    items: list[Revision]


class Included(Shown):
    """`turn_id` is the turn that folds it into the transcript, where the session was idle."""

    session_id: UUID
    scope: str
    revision: int
    entries: list[str]
    turn_id: UUID | None

"""Bodies about people and their tokens."""

from __future__ import annotations

from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import Field

from api.wire.asked import Asked
from api.wire.fields import Line, Name
from api.wire.shown import Page, Shown
from shared.values import Role


class PersonAsked(Asked):
    name: Name = Field(description="As others see it; nobody else may have it")
    role: Role = Role.MEMBER
    kind: Literal["person", "service"] = "person"


class PersonChange(Asked):
    """Only what is given changes."""

    role: Role | None = None
    disabled: bool | None = Field(default=None, strict=True, description="All tokens stop working; nothing is deleted")


class TokenAsked(Asked):
    person: UUID
    label: Line = ""


class Person(Shown):
    id: UUID
    name: str
    kind: str
    role: str
    disabled: bool
    tokens: int = Field(description="How many of theirs work")
    created_at: datetime


class PersonPage(Page):
    items: list[Person]


class Token(Shown):
    """`token` is given in the answer that made it and never again: only its digest is stored."""

    id: UUID
    person: UUID
    person_name: str
    label: str
    created_at: datetime
    revoked_at: datetime | None
    token: str | None = None


class TokenPage(Page):
    items: list[Token]

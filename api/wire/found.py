"""Bodies of what a search answers."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from api.wire.shown import Shown


class Beside(Shown):
    """The message before or behind a hit: its beginning."""

    message_id: str
    author: str
    role: str
    text: str


class Hit(Shown):
    """The best message of a session. `state`: `live`, or `summarised` where a summary stands for it. `more` counts the
    session's other messages that match; `handle` names the block that the snippet is of."""

    session_id: UUID
    title: str
    kind: str
    message_id: str
    turn_id: UUID
    author: str
    role: str
    state: str
    created_at: datetime
    snippet: str
    handle: str
    more: int
    before: Beside | None
    after: Beside | None


class HitPage(Shown):
    """`complete` is false where the time for a search was over before everything was looked at."""

    items: list[Hit]
    next: str | None
    complete: bool

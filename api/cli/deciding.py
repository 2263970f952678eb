"""Owns what a chat asks its person while a turn sleeps for them: calls to allow or deny one by one, or a question.

A line that was typed before something was asked cannot be the decision on it.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from api.cli import approvals, live, waiting
from api.cli.client import Client
from api.cli.exits import Stop
from api.cli.live import Live

HELP = "y allows it, n denies it (/deny WHY says why); any other line denies all that is open, and the model reads it"
OF_A_CHILD = "a child asks: y allows it, n denies it (/deny WHY says why)"
_WORDS: Mapping[str, Literal["approve", "deny"]] = {
    "y": "approve", "yes": "approve", "/approve": "approve", "n": "deny", "no": "deny", "/deny": "deny",
}  # fmt: skip


@dataclass(slots=True)
class Deciding:
    """`asked` are the calls that are open, the one that is on the screen first. `for_itself`: the turn itself asks, so
    that what a person says to it is the answer; a child that asks is told nothing by that."""

    asked: deque[Mapping[str, Any]] = field(default_factory=deque[Mapping[str, Any]])
    for_person: bool = False
    for_itself: bool = False
    for_money: bool = False
    shown_at: float = 0.0

    def parked(self, client: Client, turn: str, screen: Live) -> None:
        """The turn may have gone to sleep: ask what it asks. Raises Stop."""
        row: dict[str, Any] = client.get(f"/v1/turns/{turn}")
        shown = self.asked[0]["id"] if self.asked else None
        self.clear()
        self.for_person = waiting.on_person(row)
        self.for_itself = self.for_person and row.get("parked_on") in waiting.PERSON
        if waiting.on_money(row):
            self.for_money = True
            for line in waiting.told(row):
                screen.note(line)
        if not self.for_person:
            return
        self.asked.extend(waiting.requests(row))
        for question in waiting.questions(row):
            screen.note(f"? {question.get('text')} · your next line is the answer")
        if shown is None or not self.asked or self.asked[0]["id"] != shown:  # it is on the screen, and may be answered
            self._ask(screen)

    def clear(self) -> None:
        self.asked.clear()
        self.for_person = self.for_itself = self.for_money = False

    def take(self, client: Client, text: str, at: float, screen: Live) -> bool:
        """Whether the line was a decision. Raises Stop where the decision could not be made; it is asked on."""
        word, _, note = text.partition(" ")
        decision = _WORDS.get(word.lower())
        if decision is None or (note and not word.startswith("/")):
            return False
        if not self.asked:
            if word.startswith("/"):
                screen.note("nothing waits for your decision")
            return word.startswith("/")
        if at <= self.shown_at:
            screen.note("you typed that before this was asked: say it again")
            return True
        request = self.asked[0]
        try:
            row = approvals.decide(client, str(request["id"]), decision, note.strip() or None)
        except Stop as stop:
            if stop.status == 409:  # somebody was faster, or its time has passed
                self._next(screen)
            raise
        screen.note(f"{row.get('status')}: {live.call(request)}")
        self._next(screen)
        return True

    def _next(self, screen: Live) -> None:
        self.asked.popleft()
        self.for_person = bool(self.asked)
        self._ask(screen)

    def _ask(self, screen: Live) -> None:
        if not self.asked:
            return
        more = f" (1 of {len(self.asked)})" if len(self.asked) > 1 else ""
        self.shown_at = time.monotonic()  # before it is seen: who answers at once has seen it
        screen.note(f"allow{more} {waiting.wanted(self.asked[0])} ? {HELP if self.for_itself else OF_A_CHILD}")

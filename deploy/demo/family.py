"""Owns the agents that the brief hands work to: each followed in a thread of its own and told while it works."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from api.cli import events, pages
from api.cli.client import Client
from api.cli.events import Seen
from api.cli.exits import Stop

PATIENCE_S = 10.0
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Child:
    number: int
    turn: str
    title: str


@dataclass(frozen=True, slots=True)
class Worked:
    """What became of one: rows of the API."""

    child: Child
    turn: Row
    calls: list[Row]


class Family:
    """Children of one turn, as its events name them."""

    def __init__(self, client: Client, show: Callable[[Child, Seen], None]) -> None:
        self._client = client
        self._show = show
        self._children: list[Child] = []
        self._threads: list[threading.Thread] = []

    def see(self, seen: Seen) -> None:
        """Of each event of the parent: a child that begins is followed from here on."""
        if seen.event.kind != "child.started":
            return
        data = seen.event.data
        child = Child(int(data.get("index") or 0) + 1, str(data.get("turn")), str(data.get("title") or ""))
        if any(known.turn == child.turn for known in self._children):
            return
        self._children.append(child)
        thread = threading.Thread(target=self._follow, args=(child,), daemon=True, name=f"agent {child.number}")
        self._threads.append(thread)
        thread.start()

    def worked(self) -> list[Worked]:
        """When the parent is over: its children are too, and what was not told yet is told in a moment."""
        for thread in self._threads:
            thread.join(PATIENCE_S)
        return [
            Worked(
                child,
                self._client.get(f"/v1/turns/{child.turn}"),
                list(pages.rows(self._client, f"/v1/turns/{child.turn}/calls")),
            )
            for child in self._children
        ]

    def _follow(self, child: Child) -> None:
        try:
            for seen in events.follow(self._client, child.turn):
                self._show(child, seen)
        except Stop:
            return  # what it did is told by its row in the end; its parent's own stream says what is wrong

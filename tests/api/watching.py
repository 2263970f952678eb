"""A client as docs/events.md describes it: reads server-sent events and folds them into text."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.api.serving import Person


@dataclass(slots=True)
class Fold:
    """The plainest client: appends deltas by step, voids on `step.restarted`, replaces on `snapshot`. Nothing else."""

    texts: dict[int, str] = field(default_factory=dict[int, str])
    last_id: str | None = None
    kinds: list[str] = field(default_factory=list[str])
    ids: list[str] = field(default_factory=list[str])
    end: dict[str, Any] | None = None

    def take(self, event: dict[str, Any]) -> None:
        kind, data = event["event"], event["data"]
        self.kinds.append(kind)
        self.ids.append(event["id"])
        self.last_id = event["id"]
        if kind == "text.delta":
            self.texts[data["step"]] = self.texts.get(data["step"], "") + data["text"]
        elif kind == "step.restarted":
            self.texts.pop(data["step"], None)
        elif kind == "snapshot":
            self.texts = {one["step"]: one["text"] for one in data["steps"]}
        elif kind == "turn.finished":
            self.end = data

    @property
    def text(self) -> str:
        return "".join(text for _, text in sorted(self.texts.items()))


def parse(lines: Any) -> Generator[dict[str, Any]]:
    event: dict[str, Any] = {}
    for line in lines:
        if not line:
            if "data" in event:
                yield {
                    "event": event.get("event", "message"),
                    "id": event.get("id", ""),
                    "data": json.loads(event["data"]),
                }
            event = {}
        elif line.startswith(":"):
            event.setdefault("comments", []).append(line)
        else:
            name, _, value = line.partition(": ")
            event[name] = value


@contextmanager
def watching(person: Person, turn: str, last_id: str | None = None) -> Generator[Generator[dict[str, Any]]]:
    """The events of a turn, from `last_id` on."""
    headers = [] if last_id is None else [(b"last-event-id", last_id.encode())]
    timeout = httpx.Timeout(20, read=20)
    with person.http.stream("GET", f"/v1/turns/{turn}/events", headers=headers, timeout=timeout) as answer:
        assert answer.status_code == 200, answer.read()
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield parse(answer.iter_lines())


def follow(person: Person, turn: str, fold: Fold | None = None) -> Fold:
    """Watch to the end, or on from where `fold` stopped."""
    fold = fold or Fold()
    with watching(person, turn, fold.last_id) as events:
        for event in events:
            fold.take(event)
    return fold

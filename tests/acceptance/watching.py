"""A client that watches a turn as the contract describes it, over connections that break at random."""

from __future__ import annotations

import json
import random
from collections.abc import Generator
from dataclasses import dataclass, field

import httpx

from tests.acceptance.house import Row

MOST_CONNECTIONS = 200


@dataclass(slots=True)
class Watched:
    """What a viewer has: text by step, the ids it was sent, and how the turn ended."""

    texts: dict[int, str] = field(default_factory=dict[int, str])
    fence: int = -1
    last_id: str | None = None
    ids: list[str] = field(default_factory=list[str])
    finished: list[Row] = field(default_factory=list[Row])
    connections: int = 0
    snapshots: int = 0

    @property
    def text(self) -> str:
        """Of the newest step that has any: made of deltas and snapshots alone."""
        return next((text for _, text in sorted(self.texts.items(), reverse=True) if text), "")

    def take(self, id_: str, kind: str, data: Row) -> None:
        fence = int(id_.split(".")[1])
        self.last_id = id_
        if fence < self.fence:
            return
        self.fence = fence
        match kind:
            case "text.delta":
                self.texts[data["step"]] = self.texts.get(data["step"], "") + data["text"]
            case "step.restarted":
                self.texts[data["step"]] = ""
            case "snapshot":
                self.snapshots += 1
                self.texts = {one["step"]: one["text"] for one in data["steps"]}
            case "turn.finished":
                self.finished.append(data)
            case _:
                pass
        if kind != "snapshot":
            self.ids.append(id_)


def events(http: httpx.Client, turn: str, last_id: str | None) -> Generator[tuple[str, str, Row]]:
    """(id, kind, data) until the server ends the answer, or the caller hangs up."""
    headers = {"Last-Event-ID": last_id} if last_id else {}
    with http.stream("GET", f"/v1/turns/{turn}/events", headers=headers, timeout=30) as answer:
        if answer.status_code == 204:
            return
        assert answer.status_code == 200, answer.read()
        fields: dict[str, str] = {}
        for line in _lines(answer):
            if not line and "data" in fields:
                yield fields["id"], fields["event"], json.loads(fields["data"])
                fields = {}
            elif line and not line.startswith(":"):
                name, _, value = line.partition(": ")
                fields[name] = value


def _lines(answer: httpx.Response) -> Generator[str]:
    """By LF alone: `iter_lines` also breaks at U+2028, which may stand in the data."""
    rest = b""
    for chunk in answer.iter_bytes():
        *lines, rest = (rest + chunk).split(b"\n")
        yield from (line.decode("utf-8") for line in lines)


def watch(http: httpx.Client, turn: str, chance: random.Random) -> Watched:
    """Follow a turn to its end, hanging up after a random number of events; now and then as one who knows nothing."""
    seen = Watched()
    while not seen.finished:
        seen.connections += 1
        assert seen.connections < MOST_CONNECTIONS, f"turn {turn} does not end"
        if chance.random() < 0.1:
            seen = Watched(connections=seen.connections)
        left = chance.choice((1, 2, 3, 5, 8, 13, 1000))
        stream = events(http, turn, seen.last_id)
        for id_, kind, data in stream:
            seen.take(id_, kind, data)
            left -= 1
            if not left and not seen.finished:
                break
        stream.close()
    return seen

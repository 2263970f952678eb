"""A client that watches a turn and loses its connection at random, as a phone in a tunnel does."""

from __future__ import annotations

import itertools
import random
import time
from dataclasses import dataclass

import httpx

from api.cli import sse
from api.cli.fold import Folded, fold
from tests.chaos.rig import Rig


@dataclass(slots=True)
class Watched:
    """What the client ended with."""

    text: str
    status: str | None
    connections: int


def watch(rig: Rig, turn: str, rng: random.Random, seconds: float = 90.0) -> Watched:
    """Follow a turn to its terminal event over as many connections as it takes."""
    state = Folded()
    connections = 0
    end = time.monotonic() + seconds
    while state.status is None:
        assert time.monotonic() < end, f"no terminal event of turn {turn} after {connections} connections: {state}"
        connections += 1
        headers = {"last-event-id": state.last_id} if state.last_id else {}
        # Every second connection on average ends in the middle, after a few events.
        patience = rng.randint(1, 8) if rng.random() < 0.5 else 1_000_000
        try:
            with rig.http.stream("GET", f"/v1/turns/{turn}/events", headers=headers, timeout=20) as answer:
                if answer.status_code == 204:
                    break
                if answer.status_code != 200:
                    time.sleep(0.1)
                    continue
                events = sse.parse(sse.lines(answer.iter_bytes()))
                for event in itertools.islice(events, patience):
                    state, _ = fold(state, event)
        except httpx.TransportError:
            time.sleep(0.05)
    return Watched(state.text, state.status, connections)

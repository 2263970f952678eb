"""Follows a turn through broken connections: resumes where it was, waits longer each time, gives up at last."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx

from api.cli import sse
from api.cli.client import Client
from api.cli.exits import Stop
from api.cli.fold import Change, Dropped, Event, Folded, fold

IDLE_S = 40.0
"""No line for so long, not even a keep-alive: the connection is dead though nothing said so."""
_FIRST_WAIT, _LONGEST_WAIT = 0.1, 5.0
_MAY_COME_BACK = frozenset({429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class Seen:
    """One event, the state after it, and what a screen has to change."""

    event: Event
    state: Folded
    change: Change


def follow(
    client: Client,
    turn: str,
    *,
    patience_s: float = 120.0,
    last_id: str | None = None,
    lost: Callable[[str], None] | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[Seen]:
    """Events until the turn is finished. `lost` hears of each broken connection. Stop after `patience_s` of nothing."""
    state = Folded(last_id=last_id)
    over: Event | None = None  # made from the row of a turn whose stream was closed without its last event
    wait, alone_since = _FIRST_WAIT, time.monotonic()
    while state.status is None:
        reason, seen = "the stream ended early", 0
        try:
            with client.stream(f"/v1/turns/{turn}/events", state.last_id, IDLE_S) as lines:
                for event in sse.parse(lines):
                    seen, wait, alone_since = seen + 1, _FIRST_WAIT, time.monotonic()
                    state, change = fold(state, event)
                    if not isinstance(change, Dropped):
                        yield Seen(event, state, change)
                    if state.status is not None:
                        return
            # Only after a look at the stream since the turn ended: what came before its end must not be skipped.
            if over is not None and not seen:
                state, change = fold(state, over)
                yield Seen(over, state, change)
                return
            over = _ended(client, turn)
            if over is not None:
                continue  # nothing was lost: it is over, and one look more tells whether anything came before its end
        except httpx.TransportError as error:
            reason = type(error).__name__
        except Stop as stop:
            if stop.status not in _MAY_COME_BACK and stop.code != "api_unreachable":
                raise
            reason = stop.code
        if time.monotonic() - alone_since > patience_s:
            raise Stop(
                "events_lost",
                f"no event of turn {turn} for {patience_s:g} s ({reason}); it goes on without you:"
                f" `nightshift watch {turn}` looks again",
            )
        if lost is not None:
            lost(reason)
        sleep(wait * random.uniform(0.7, 1.3))
        wait = min(wait * 2, _LONGEST_WAIT)


def _ended(client: Client, turn: str) -> Event | None:
    """The last event, made from the row, for a stream that was closed before it came."""
    row: dict[str, Any] = client.get(f"/v1/turns/{turn}")
    if row.get("status") not in {"done", "failed", "cancelled"}:
        return None
    return Event("", "turn.finished", {"status": row["status"], "answer": row.get("answer"), "error": row.get("error")})

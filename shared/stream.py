"""A turn's events on their way to the people who watch: one Redis stream a turn, bounded and short-lived.

The stream may vanish at any moment: what is in it is also in Postgres, or was never promised. An event's id is
`<step>.<fence>.<n>`, made by the writer; `n` counts from 1 within a fence without a gap, so a reader sees that
something is missing. Appending is fenced: a writer whose fence is below the highest that the stream has seen adds
nothing. Others tell only what changes no text (`Aside`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast
from uuid import UUID

import orjson
import redis

from shared.values import EventKind

MAX_EVENTS = 20_000
KEEP_S = 3600
HINTS = "ns:hints"
"""Pub/sub channel: `cancel:<turn>` and `steer:<turn>`, hints that a running worker may act on at once."""


def key(turn: object) -> str:
    return f"ns:turn:{turn}:events"


def fence_key(turn: object) -> str:
    return f"ns:turn:{turn}:fence"


@dataclass(frozen=True, slots=True)
class Event:
    """`step` and `fence` stand in the id; `data` is JSON-able."""

    step: int
    fence: int
    n: int
    kind: EventKind
    data: dict[str, Any]

    @property
    def id(self) -> str:
        return f"{self.step}.{self.fence}.{self.n}"


def parse_id(text: str) -> tuple[int, int, int] | None:
    """(step, fence, n) of an event id, or None where it is not one."""
    parts = text.split(".")
    if len(parts) != 3 or not all(p.isdecimal() and len(p) < 19 for p in parts):
        return None
    return int(parts[0]), int(parts[1]), int(parts[2])


# KEYS: stream, fence. ARGV: fence, keep seconds, max length, then id, kind, data of each event.
APPEND = """
local seen = tonumber(redis.call('get', KEYS[2]) or '-1')
local mine = tonumber(ARGV[1])
if mine < seen then return 0 end
if mine > seen then redis.call('set', KEYS[2], ARGV[1]) end
for i = 4, #ARGV, 3 do
  redis.call('xadd', KEYS[1], 'maxlen', '~', ARGV[3], '*', 'id', ARGV[i], 'kind', ARGV[i + 1], 'data', ARGV[i + 2])
end
redis.call('expire', KEYS[1], ARGV[2])
redis.call('expire', KEYS[2], ARGV[2])
return (#ARGV - 3) / 3
"""


@dataclass(frozen=True, slots=True)
class Aside:
    """What somebody other than its holder tells on a turn's stream: it changes no text, and its number is 0, which no
    holder gives. It stands under the fence that the stream has seen, `fence` where it has seen none: it may be a little
    late, and it must not outrank the holder who writes."""

    turn: UUID
    step: int
    fence: int
    kind: EventKind
    data: dict[str, Any]


# KEYS: stream, fence. ARGV: step, fence, keep seconds, max length, kind, data.
TELL = """
local fence = redis.call('get', KEYS[2]) or ARGV[2]
redis.call('xadd', KEYS[1], 'maxlen', '~', ARGV[4], '*', 'id', ARGV[1] .. '.' .. fence .. '.0', 'kind', ARGV[5],
  'data', ARGV[6])
redis.call('expire', KEYS[1], ARGV[3])
return 1
"""


def tell_args(aside: Aside) -> tuple[list[str], list[str | bytes | int]]:
    """Keys and arguments of TELL."""
    keys = [key(aside.turn), fence_key(aside.turn)]
    return keys, [aside.step, aside.fence, KEEP_S, MAX_EVENTS, aside.kind, orjson.dumps(aside.data)]


def append_args(turn: object, events: list[Event]) -> tuple[list[str], list[str | bytes | int]]:
    """Keys and arguments of APPEND for events of one turn and one fence."""
    args: list[str | bytes | int] = [events[0].fence, KEEP_S, MAX_EVENTS]
    for event in events:
        args += [event.id, event.kind, orjson.dumps(event.data)]
    return [key(turn), fence_key(turn)], args


def decode(fields: dict[bytes, bytes]) -> Event | None:
    """The event of one stream entry, or None where the entry is not ours."""
    position = parse_id(fields.get(b"id", b"").decode("ascii", "replace"))
    if position is None:
        return None
    try:
        kind = EventKind(fields[b"kind"].decode())
        data = cast("dict[str, Any]", orjson.loads(fields[b"data"]))
    except (KeyError, ValueError):
        return None
    return Event(*position, kind, data)


def connect(url: str, *, connections: int = 64, timeout_s: float | None = 2.0) -> redis.Redis:
    """A redis-py client with a bounded pool and bounded waits."""
    pool = redis.BlockingConnectionPool.from_url(  # pyright: ignore[reportUnknownMemberType] - untyped in redis-py
        url, max_connections=connections, timeout=2, socket_timeout=timeout_s, socket_connect_timeout=1.0
    )
    return redis.Redis(connection_pool=pool)

"""Server-sent events as bytes (WHATWG HTML). JSON has no raw line break, so an event's data is one line."""

from __future__ import annotations

from typing import Any

import orjson

from shared.request import canonical
from shared.stream import Event

HEARTBEAT = b": still here\n\n"
OPENING = b": nightshift\nretry: 1000\n\n"
TOO_SLOW = b": too slow, come back with the last id\nretry: 200\n\n"
LEAVING = b": this server is stopping, come back with the last id\nretry: 500\n\n"
REVOKED = b": the token was revoked\n\n"


def frame(id_: str, kind: str, data: dict[str, Any]) -> bytes:
    return b"id: %b\nevent: %b\ndata: %b\n\n" % (id_.encode(), kind.encode(), _json(data))


def snapshot(id_: str, turn_text: str, rest: dict[str, Any]) -> bytes:
    """A snapshot: the turn as JSON text already, and what is known of its steps."""
    data = b'{"turn":%b,%b' % (turn_text.encode(), _json(rest)[1:])
    return b"id: %b\nevent: snapshot\ndata: %b\n\n" % (id_.encode(), data)


def of_event(event: Event) -> bytes:
    return frame(event.id, event.kind, {"step": event.step, "fence": event.fence, **event.data})


def _json(data: dict[str, Any]) -> bytes:
    try:
        return orjson.dumps(data)
    except TypeError:  # a lone surrogate that came out of stored JSON
        return canonical.dump(data).encode()

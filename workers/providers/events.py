"""Owns how bytes become events: server-sent events split at their line ends, each data line parsed as JSON once.

Invariant: the events are the same however the bytes were cut into chunks.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast

import orjson

from shared.request import canonical

LINE_LIMIT = 8 * 1024 * 1024
"""Bytes of one event. The largest honest one is a tool's arguments sent whole."""


class TooLong(Exception):
    """A single event is longer than any honest one."""


class NotAnEvent(Exception):
    """A data line that is not a JSON object with a type."""


DONE = "[DONE]"
"""Type of the event by which a stream of chat completions ends."""


def read(
    chunks: Iterable[bytes],
    parse: Callable[[bytes], dict[str, Any]] | None = None,
    alive: Callable[[], None] | None = None,
) -> Iterator[dict[str, Any]]:
    """The JSON of each event, in order. The field `event:` is not needed: each object carries its `type`. `alive` hears
    of each line that is a comment: by them servers say that they still work on an answer that has not begun (llama.cpp
    while it reads the prompt, OpenRouter while it waits for its upstream)."""
    parsed = parse or parse_typed
    pending: list[bytes] = []
    data: list[bytes] = []
    size = 0
    for chunk in chunks:
        size += len(chunk)
        if size > LINE_LIMIT:
            raise TooLong(f"an event of more than {LINE_LIMIT:,} bytes")
        if b"\n" not in chunk and b"\r" not in chunk:
            pending.append(chunk)
            continue
        block = b"".join((*pending, chunk)) if pending else chunk
        lines = block.splitlines(keepends=True)
        # A carriage return at the end may be the first half of a line end.
        pending = [] if block.endswith(b"\n") else [lines.pop()]
        for line in lines:
            if line.startswith(b"data:"):
                data.append(line[5:].rstrip(b"\r\n"))
            elif alive is not None and line.startswith(b":"):
                alive()
            elif data and not line.rstrip(b"\r\n"):
                yield parsed(data[0] if len(data) == 1 else b"\n".join(data))
                data = []
        size = sum(map(len, pending)) + sum(map(len, data))
    # A stream that ends without its blank line may have told us its last event whole.
    last = b"".join(pending)
    if last.startswith(b"data:"):
        data.append(last[5:].rstrip(b"\r\n"))
    if data:
        with contextlib.suppress(NotAnEvent):
            yield parsed(b"\n".join(data))


def parse_typed(data: bytes) -> dict[str, Any]:
    value = parse_object(data)
    if not isinstance(value.get("type"), str):
        raise NotAnEvent("its data is no object with a type")
    return value


def parse_chunk(data: bytes) -> dict[str, Any]:
    """A chunk of a chat completion, which has no type, or the end of it."""
    return {"type": DONE} if data.strip() == b"[DONE]" else parse_object(data)


def parse_object(data: bytes) -> dict[str, Any]:
    """One object of JSON, also one with half a pair of surrogates. Raises NotAnEvent."""
    try:
        value: object = orjson.loads(data)
    except orjson.JSONDecodeError:
        value = _with_lone_surrogates(data)
    if not isinstance(value, dict):
        raise NotAnEvent("its data is no object")
    return cast("dict[str, Any]", value)


def _with_lone_surrogates(data: bytes) -> object:
    """orjson refuses half a surrogate pair, which is honest JSON where a delta ends inside a character."""
    try:
        return canonical.load_strict(data.decode())
    except ValueError as error:
        raise NotAnEvent("its data is not JSON") from error

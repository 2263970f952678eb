"""Reads server-sent events, pure (WHATWG HTML, "Server-sent events"). A broken event is left out, never guessed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, cast

from api.cli.fold import Event


def lines(chunks: Iterable[bytes]) -> Iterator[str]:
    """Lines as the standard ends them, and at nothing else: U+2028 and U+0085 stand in JSON text as themselves."""
    rest = b""
    for chunk in chunks:
        rest += chunk
        *whole, rest = rest.splitlines(keepends=True) or [b""]
        if rest.endswith(b"\n"):
            whole, rest = [*whole, rest], b""
        for raw in whole:
            yield raw.rstrip(b"\r\n").decode("utf-8", "replace")


def parse(lines: Iterable[str]) -> Iterator[Event]:
    """Events from the lines of a stream; an event without its closing empty line was cut off and does not count."""
    kind, data, last = "message", list[str](), ""
    for line in lines:
        if not line:
            event = _event(last, kind, data)
            kind, data = "message", []
            if event is not None:
                yield event
            continue
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        match name:
            case "event":
                kind = value
            case "data":
                data.append(value)
            case "id" if "\0" not in value:
                last = value
            case _:
                continue  # a comment (keep-alive), `retry`, or a field of a later version


def _event(last: str, kind: str, data: list[str]) -> Event | None:
    if not data:
        return None
    try:
        found = json.loads("\n".join(data))
    except ValueError:
        return None
    return Event(last, kind, cast("dict[str, Any]", found)) if isinstance(found, dict) else None

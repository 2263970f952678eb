"""A turn followed on its stream to its end, over one connection that is kept: what a client does, at little cost."""

from __future__ import annotations

import contextlib
import http.client
from collections.abc import Callable, Generator
from typing import Any
from urllib.parse import urlsplit

import orjson

from tests.chaos.rig import Rig

_WAIT_S = 600.0


@contextlib.contextmanager
def streams(rig: Rig) -> Generator[Callable[[str], dict[str, Any]]]:
    """A function that gives the data of a turn's `turn.finished`. One thread's alone."""
    facts = rig.facts
    parts = urlsplit(str(facts["url"]))
    headers = {"Authorization": f"Bearer {facts['token']}"}
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=_WAIT_S)

    def follow(turn: str) -> dict[str, Any]:
        connection.request("GET", f"/v1/turns/{turn}/events", headers=headers)
        with connection.getresponse() as answer:
            assert answer.status == 200, answer.read()
            kind, found = b"", None
            while line := answer.readline():
                if line.startswith(b"event: "):
                    kind = line[7:].rstrip()
                elif line.startswith(b"data: ") and kind == b"turn.finished":
                    found = orjson.loads(line[6:])
            assert found is not None, f"the stream of {turn} ended before its turn"
            return found

    with contextlib.closing(connection):
        yield follow

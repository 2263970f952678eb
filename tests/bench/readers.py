"""A client of the API over one connection that is kept: makes sessions, sends turns, follows each on its stream to its
end. It waits as long as a crowded machine takes."""

from __future__ import annotations

import contextlib
import http.client
import threading
import time
from collections.abc import Generator, Mapping
from http.client import HTTPConnection, HTTPResponse
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import orjson

from tests.chaos.rig import Rig

_WAIT_S = 600.0


class Reader:
    """One thread's alone. Once `stop` is set it raises at the next line that comes, be it a heartbeat."""

    def __init__(self, connection: HTTPConnection, token: str, stop: threading.Event) -> None:
        self._connection = connection
        self._stop = stop
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def session(self) -> str:
        return self._post("/v1/sessions", {}, 201)["id"]

    def send(self, session: str, text: str) -> str:
        return self._post(f"/v1/sessions/{session}/turns", {"input": text}, 202)["turn"]["id"]

    def follow(self, turn: str) -> dict[str, Any]:
        """The data of its `turn.finished`."""
        with self._asked("GET", f"/v1/turns/{turn}/events", None, 200) as answer:
            kind, found = b"", None
            while line := answer.readline():
                assert not self._stop.is_set(), "stopped"
                if line.startswith(b"event: "):
                    kind = line[7:].rstrip()
                elif line.startswith(b"data: ") and kind == b"turn.finished":
                    found = orjson.loads(line[6:])
        assert found is not None, f"the stream of {turn} ended before its turn"
        return found

    def _post(self, path: str, body: dict[str, Any], wanted: int) -> dict[str, Any]:
        key = {"Idempotency-Key": str(uuid4())}
        with self._asked("POST", path, orjson.dumps(body), wanted, key) as answer:
            return orjson.loads(answer.read())

    def _asked(
        self, method: str, path: str, body: bytes | None, wanted: int, more: Mapping[str, str] | None = None
    ) -> HTTPResponse:
        """Asked again, as the answer says, where the database was too slow for the API."""
        until = time.monotonic() + _WAIT_S
        while True:
            self._connection.request(method, path, body, self._headers | dict(more or {}))
            answer = self._connection.getresponse()
            if answer.status != 503 or time.monotonic() > until:
                assert answer.status == wanted, answer.read()
                return answer
            answer.read()
            time.sleep(1)


@contextlib.contextmanager
def reader(rig: Rig, stop: threading.Event) -> Generator[Reader]:
    facts = rig.facts
    parts = urlsplit(str(facts["url"]))
    with contextlib.closing(
        http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=_WAIT_S)
    ) as connection:
        yield Reader(connection, facts["token"], stop)

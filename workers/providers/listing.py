"""Owns the question whether a provider is there, which costs nothing: its list of models."""

from __future__ import annotations

import time

import httpx2

from shared.request.dialect import Wire
from workers.providers.client import Client
from workers.providers.sockets import Cancel, Line, in_call

PATHS = {Wire.ANTHROPIC: "/v1/models", Wire.CHAT: "/models", Wire.RESPONSES: "/models", Wire.CONVERSE: "/"}
LONGEST_S = 3.0
ROOM = 4 * 1024 * 1024
NOT_IMPLEMENTED = 501


def alive(client: Client) -> bool:
    """Whether it answers anything at all within three seconds. A refusal is an answer, also that it lists no models; a
    failure of its own is not."""
    now = time.monotonic()
    line = Line(
        cancel=Cancel(), connect_s=LONGEST_S, write_s=LONGEST_S, between_s=LONGEST_S, next_by=now + LONGEST_S,
        ends_at=now + LONGEST_S, room=ROOM,
    )  # fmt: skip
    version = {"anthropic-version": "2023-06-01"} if client.declared.wire is Wire.ANTHROPIC else {}
    url = client.declared.base_url + PATHS[client.declared.wire]
    with in_call(line):
        try:
            request = client.http.build_request("GET", url, headers={**client.headers, **version})
            answer = client.http.send(request)
        except httpx2.HTTPError:
            return False
    return answer.status_code < 500 or answer.status_code == NOT_IMPLEMENTED

"""Gives tests one client a server and a call that collects its deltas."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from shared.providers.declaration import Declaration
from tests.providers.raw_server import Act, RawServer, serving
from workers.providers import wire
from workers.providers.replies import Delta, Reply, TextDelta

KEY = "sk-test-0123456789abcdef"


@dataclass
class Caller:
    server: RawServer
    client: wire.Client
    deltas: list[Delta] = field(default_factory=list[Delta])

    def call(
        self, body: bytes = b"{}", cancel: wire.Cancel | None = None, timeouts: wire.Timeouts | None = None
    ) -> Reply:
        self.deltas = []
        return wire.stream(
            self.client, body, sink=self.deltas.append, cancel=cancel or wire.Cancel(), timeouts=timeouts
        )

    def fails(self, body: bytes = b"{}", timeouts: wire.Timeouts | None = None) -> wire.CallFailed:
        with pytest.raises(wire.CallFailed) as caught:
            self.call(body, timeouts=timeouts)
        return caught.value

    @property
    def shown(self) -> str:
        return "".join(delta.text for delta in self.deltas if isinstance(delta, TextDelta))


@contextmanager
def calling(*acts: Act) -> Generator[Caller]:
    with serving(*acts) as server, client_of(server.url) as client:
        yield Caller(server, client)


@contextmanager
def client_of(
    url: str, kind: str = "anthropic", declared: Declaration | None = None, ca_file: str | None = None
) -> Generator[wire.Client]:
    client = wire.open_client(wire.Provider(url, KEY, kind, ca_file, declared))
    try:
        yield client
    finally:
        wire.close_client(client)

"""Owns a rehearsal provider run as a process of its own for tests, and the two clients that speak to it."""

import secrets
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import anthropic
import httpx
from anthropic import Stream
from anthropic.types import Message, RawMessageStreamEvent

ROOT = Path(__file__).parents[2]
HEADER = "x-rehearsal-token"
START = "import sys; from deploy.rehearsal.server import main; sys.exit(main(sys.argv[1:]))"
READY = "nightshift rehearsal ready "
TOKEN = secrets.token_urlsafe(16)

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Served:
    url: str
    process: subprocess.Popen[str]
    sdk: anthropic.Anthropic
    http: httpx.Client

    def control(self, route: str, /, **body: Any) -> Json:
        answer = self.http.post(f"/rehearsal/{route}", json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def script(self, **body: Any) -> Json:
        return self.control("script", **body)

    def ledger(self, session: str | None = None) -> list[Json]:
        query = {} if session is None else {"session": session}
        return self.http.get("/rehearsal/ledger", params=query).json()["calls"]

    def wait(self, **query: Any) -> Json:
        answer = self.http.get("/rehearsal/wait", params=query, timeout=30)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def create(self, asked: Json) -> Message:
        """A plain reply through the SDK."""
        given: Any = asked
        return cast(Message, self.sdk.messages.create(**given))

    def events(self, asked: Json) -> Stream[RawMessageStreamEvent]:
        """A streamed reply through the SDK, event by event."""
        given: Any = {**asked, "stream": True}
        return cast("Stream[RawMessageStreamEvent]", self.sdk.messages.create(**given))

    def raw(self, body: Json | bytes, headers: dict[str, str] | None = None) -> httpx.Response:
        """A call without the SDK: its bytes are the test's own."""
        merged = {"x-api-key": "k", "anthropic-version": "2026-10-21", **(headers or {})}
        if isinstance(body, bytes):
            return self.http.post("/v1/messages", content=body, headers=merged)
        return self.http.post("/v1/messages", json=body, headers=merged)


@contextmanager
def serve(cwd: Path | None = None, *arguments: str, token: str = TOKEN) -> Generator[Served]:
    """A provider on a free port; ended by SIGTERM, and by its exit code known to have ended well. `http` carries
    `TOKEN`, whatever token the provider was given."""
    process = subprocess.Popen(
        [sys.executable, "-c", START, *arguments],
        stdout=subprocess.PIPE,
        text=True,
        cwd=cwd,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
        | ({"NIGHTSHIFT_REHEARSAL_TOKEN": token} if token else {}),
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith(READY), line
        url = line.removeprefix(READY).strip()
        sdk = anthropic.Anthropic(base_url=url, api_key="x", max_retries=0, timeout=30)
        with sdk, httpx.Client(base_url=url, timeout=30, headers={HEADER: TOKEN}) as http:
            yield Served(url, process, sdk, http)
    finally:
        process.terminate()
        code = process.wait(10)
    assert code == 0

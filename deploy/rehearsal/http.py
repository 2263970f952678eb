"""Owns the HTTP/1.1 connection: one request at a time, keep-alive, head and body in one write, Nagle's delay off.

Invariant: a handler's task never outlives its connection.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final, cast
from urllib.parse import parse_qsl

import httptools

TOKEN_HEADER: Final = "x-rehearsal-token"  # noqa: S105 - its name
BODY_LIMIT: Final = 32 * 1024 * 1024
REASONS: Final = {
    200: "OK",
    302: "Found",
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    408: "Request Timeout",
    429: "Too Many Requests",
    500: "Internal Server Error",
}


@dataclass(slots=True)
class HttpRequest:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes
    too_large: bool = False


Header = tuple[str, str]
Handler = Callable[[HttpRequest, "Exchange"], Awaitable[None]]


class Exchange:
    """One answer on one connection. Whoever holds it writes the head once and the body in pieces or at once."""

    def __init__(self, connection: "Connection") -> None:
        self._connection = connection
        self._chunked = False
        self.begun = False

    def answer(self, status: int, headers: list[Header], body: bytes) -> None:
        """A whole answer in one write."""
        self.begun = True
        self._connection.write(_head(status, [*headers, ("content-length", str(len(body)))]) + body)

    def begin(self, status: int, headers: list[Header], first: bytes) -> None:
        """Head of a chunked answer, with its first piece, in one write."""
        self.begun = self._chunked = True
        self._connection.write(_head(status, [*headers, ("transfer-encoding", "chunked")]) + _chunk(first))

    async def send(self, piece: bytes) -> None:
        """One more chunk; waits while the peer does not read."""
        self._connection.write(_chunk(piece))
        await self._connection.drain()

    def finish(self, last: bytes = b"") -> None:
        """End the chunked body properly."""
        self._connection.write((_chunk(last) if last else b"") + b"0\r\n\r\n")

    def whole_stream(self, status: int, headers: list[Header], body: bytes) -> None:
        """A chunked answer of one chunk, head and end in one write."""
        self.begun = True
        head = _head(status, [*headers, ("transfer-encoding", "chunked")])
        self._connection.write(head + _chunk(body) + b"0\r\n\r\n")

    def answer_half(self, status: int, headers: list[Header], body: bytes) -> None:
        """A whole answer announced and half of it sent; then the socket closes."""
        self.begun = True
        self._connection.write(_head(status, [*headers, ("content-length", str(len(body)))]) + body[: len(body) // 2])
        self._connection.close()

    def cut(self) -> None:
        """Close the socket where it stands."""
        self.begun = True
        self._connection.close()


def _chunk(piece: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(piece), piece)


def _head(status: int, headers: list[Header]) -> bytes:
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers)
    return f"HTTP/1.1 {status} {REASONS.get(status, 'Status')}\r\n{lines}\r\n".encode("latin-1", "replace")


@dataclass(slots=True)
class _Incoming:
    url: bytes = b""
    headers: dict[str, str] = field(default_factory=dict[str, str])
    parts: list[bytes] = field(default_factory=list[bytes])
    size: int = 0


class Connection(asyncio.Protocol):
    """Parses requests as they come and runs the handler for each, in order."""

    def __init__(self, handler: Handler, open_connections: set["Connection"]) -> None:
        self._handler = handler
        self._open = open_connections
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport | None = None
        self._incoming = _Incoming()
        self._waiting: list[tuple[HttpRequest, bool]] = []
        self._task: asyncio.Task[None] | None = None
        self._writable = asyncio.Event()
        self._writable.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports have the methods without the class.
        self._transport = cast(asyncio.Transport, transport)
        self._open.add(self)
        raw = transport.get_extra_info("socket")
        if raw is not None and raw.family in (socket.AF_INET, socket.AF_INET6):
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 (the protocol names it)
        self._open.discard(self)
        self._transport = None
        self._writable.set()
        if self._task is not None:
            self._task.cancel()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self.write(_head(400, [("content-length", "0"), ("connection", "close")]))
            self.close()

    def on_message_begin(self) -> None:
        self._incoming = _Incoming()

    def on_url(self, url: bytes) -> None:
        self._incoming.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._incoming.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        if self._incoming.headers.get("expect", "").lower() == "100-continue":
            self.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        self._incoming.size += len(body)
        if self._incoming.size <= BODY_LIMIT:
            self._incoming.parts.append(body)
        else:
            self._incoming.parts.clear()

    def on_message_complete(self) -> None:
        incoming = self._incoming
        url = httptools.parse_url(incoming.url)
        request = HttpRequest(
            method=self._parser.get_method().decode("latin-1"),
            path=url.path.decode("latin-1"),
            query=dict(parse_qsl(url.query.decode("latin-1"))) if url.query else {},
            headers=incoming.headers,
            body=incoming.parts[0] if len(incoming.parts) == 1 else b"".join(incoming.parts),
            too_large=incoming.size > BODY_LIMIT,
        )
        self._incoming = _Incoming()
        self._waiting.append((request, self._parser.should_keep_alive()))
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._serve())

    async def _serve(self) -> None:
        while self._waiting:
            request, keep_alive = self._waiting.pop(0)
            exchange = Exchange(self)
            await self._handler(request, exchange)
            if not keep_alive or not exchange.begun:
                self.close()
        self._task = None

    def write(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    async def drain(self) -> None:
        await self._writable.wait()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def abandon(self) -> None:
        """The server stops: drop whatever is still going on."""
        if self._transport is not None:
            self._transport.abort()

"""Owns the way from an httpx request to our sockets, and the connections of one provider between calls.

Invariant: a connection is in the hands of one call or idle, never both; its socket is let go before it becomes idle.
Nothing that comes compressed is unpacked.
"""

from __future__ import annotations

import ssl
import threading
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import httpcore2
import httpx2

from workers.providers.sockets import KEEPALIVE, HeldBackend, answered, let_go_current

IDLE_CONNECTIONS = 1_000
IDLE_S = 55.0
"""Shorter than the usual 60 s of the other side, so that we are the ones who close."""
ENCODING = "nightshift_content_encoding"


class Connections:
    """Takes and gives at a cost that does not grow with their number: httpcore's pool looks at every connection, twice
    a call, which at 500 calls in flight is more than half of a call's time. Never makes a call wait: such a wait could
    not be cancelled, and the process's slots bound the number."""

    def __init__(self, context: ssl.SSLContext | None) -> None:
        self._context = context
        self._backend = HeldBackend()
        self._lock = threading.Lock()
        self._idle: deque[httpcore2.HTTPConnection] = deque()
        self._busy = 0
        self._closed = False

    @property
    def idle(self) -> int:
        return len(self._idle)

    @property
    def busy(self) -> int:
        return self._busy

    def take(self, origin: httpcore2.Origin) -> httpcore2.HTTPConnection:
        """The connection that was used last, if it still stands, else a new one that is not yet connected."""
        with self._lock:
            self._busy += 1
        while True:
            with self._lock:
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                return httpcore2.HTTPConnection(
                    origin,
                    ssl_context=self._context,
                    keepalive_expiry=IDLE_S,
                    network_backend=self._backend,
                    socket_options=KEEPALIVE,
                )
            if connection.is_available() and not connection.has_expired():
                return connection
            connection.close()

    def give(self, connection: httpcore2.HTTPConnection) -> None:
        """Back from a call, fit for another or not. Also looks at the one that has been idle longest."""
        stale: list[httpcore2.HTTPConnection] = []
        with self._lock:
            self._busy -= 1
            if not self._closed and connection.is_available() and len(self._idle) < IDLE_CONNECTIONS:
                self._idle.append(connection)
            else:
                stale.append(connection)
            if self._idle and self._idle[0].has_expired():
                stale.append(self._idle.popleft())
        for one in stale:
            one.close()

    def close(self) -> None:
        """Closes what is idle now; what is in a call is closed when that ends."""
        with self._lock:
            self._closed = True
            idle = list(self._idle)
            self._idle.clear()
        for connection in idle:
            connection.close()


class PooledTransport(httpx2.BaseTransport):
    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        body = request.stream
        if not isinstance(body, httpx2.SyncByteStream):
            raise TypeError("a provider request has a body that can be read synchronously")
        url = httpcore2.URL(
            scheme=request.url.raw_scheme,
            host=request.url.raw_host,
            port=request.url.port,
            target=request.url.raw_path,
        )
        inner = httpcore2.Request(
            method=request.method, url=url, headers=request.headers.raw, content=body, extensions=request.extensions
        )
        connection = self._connections.take(url.origin)
        try:
            with _as_httpx():
                response = connection.handle_request(inner)
        except BaseException:
            connection.close()
            self._connections.give(connection)
            raise
        answered(response.status, response.headers)
        # A few kB of gzip can stand for gigabytes. We ask for `identity`; what comes encoded all the same stays so.
        encoding = b",".join(value for name, value in response.headers if name.lower() == b"content-encoding")
        headers = [(name, value) for name, value in response.headers if name.lower() != b"content-encoding"]
        extensions = cast("dict[str, Any]", response.extensions)  # pyright: ignore[reportUnknownMemberType] - untyped there
        return httpx2.Response(
            response.status,
            headers=headers,
            stream=_Lent(cast("Iterable[bytes]", response.stream), connection, self._connections),
            extensions={**extensions, ENCODING: encoding},
        )

    def close(self) -> None:
        self._connections.close()


class _Lent(httpx2.SyncByteStream):
    """A response's body. Closing it gives its connection back, once, after the call has let go of the socket."""

    def __init__(self, stream: Iterable[bytes], connection: httpcore2.HTTPConnection, connections: Connections) -> None:
        self._stream = stream
        self._connection = connection
        self._connections: Connections | None = connections

    def __iter__(self) -> Iterator[bytes]:
        with _as_httpx():
            yield from self._stream

    def close(self) -> None:
        connections, self._connections = self._connections, None
        if connections is None:
            return
        let_go_current()
        closer = getattr(self._stream, "close", None)
        try:
            if closer is not None:
                closer()
        finally:
            connections.give(self._connection)


@contextmanager
def _as_httpx() -> Generator[None]:
    """httpcore's errors as httpx's of the same name, which is what the SDK knows."""
    try:
        yield
    except Exception as error:
        twin = getattr(httpx2, type(error).__name__, None)
        if isinstance(twin, type) and issubclass(twin, httpx2.TransportError):
            raise twin(str(error)) from error
        raise

"""Owns the way from an httpx request to our sockets: one pool, nothing decompressed, sockets let go before pooling."""

from __future__ import annotations

import ssl
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import httpcore2
import httpx2

from workers.providers.sockets import KEEPALIVE, HeldBackend, answered, let_go_current

CONNECTIONS = 2_000
"""More than the slots of any process: a call never waits for a connection, since such a wait could not be cancelled."""
IDLE_CONNECTIONS = 1_000
IDLE_S = 55.0
"""Shorter than the usual 60 s of the other side, so that we are the ones who close."""
ENCODING = "nightshift_content_encoding"


def open_pool(context: ssl.SSLContext | None, proxy: str | None) -> httpcore2.ConnectionPool:
    if proxy is not None:
        return httpcore2.HTTPProxy(
            proxy_url=proxy,
            ssl_context=context,
            max_connections=CONNECTIONS,
            max_keepalive_connections=IDLE_CONNECTIONS,
            keepalive_expiry=IDLE_S,
            network_backend=HeldBackend(),
            socket_options=KEEPALIVE,
        )
    return httpcore2.ConnectionPool(
        ssl_context=context,
        max_connections=CONNECTIONS,
        max_keepalive_connections=IDLE_CONNECTIONS,
        keepalive_expiry=IDLE_S,
        network_backend=HeldBackend(),
        socket_options=KEEPALIVE,
    )


class PooledTransport(httpx2.BaseTransport):
    def __init__(self, pool: httpcore2.ConnectionPool) -> None:
        self.pool = pool

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        body = request.stream
        if not isinstance(body, httpx2.SyncByteStream):
            raise TypeError("a provider request has a body that can be read synchronously")
        with _as_httpx():
            response = self.pool.handle_request(
                httpcore2.Request(
                    method=request.method,
                    url=httpcore2.URL(
                        scheme=request.url.raw_scheme,
                        host=request.url.raw_host,
                        port=request.url.port,
                        target=request.url.raw_path,
                    ),
                    headers=request.headers.raw,
                    content=body,
                    extensions=request.extensions,
                )
            )
        # A few kB of gzip can stand for gigabytes. We ask for `identity`; what comes encoded all the same stays so.
        answered(response.status, response.headers)
        encoding = b",".join(value for name, value in response.headers if name.lower() == b"content-encoding")
        headers = [(name, value) for name, value in response.headers if name.lower() != b"content-encoding"]
        extensions = cast("dict[str, Any]", response.extensions)  # pyright: ignore[reportUnknownMemberType] - untyped there
        return httpx2.Response(
            response.status,
            headers=headers,
            stream=_LetGo(cast("Iterable[bytes]", response.stream)),
            extensions={**extensions, ENCODING: encoding},
        )

    def close(self) -> None:
        self.pool.close()


class _LetGo(httpx2.SyncByteStream):
    """Closing gives the connection back to the pool, so the call lets go of its socket first."""

    def __init__(self, stream: Iterable[bytes]) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[bytes]:
        with _as_httpx():
            yield from self._stream

    def close(self) -> None:
        let_go_current()
        closer = getattr(self._stream, "close", None)
        if closer is not None:
            closer()


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

"""A request's head within its bound, and its body's time. The invariant: who has not told who they are holds 64 kB and
half a minute here, or a minute more with a body that nobody reads.

The parser itself takes a line of any length and keeps it: one header of three hundred megabytes stayed in memory whole,
from a client without any token.
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from api import bodies, problems

MOST_HEAD = 64 * 1024
HEAD_S = 30.0
LINGER_S = 1.0
"""To close with bytes unread resets the connection, and the client would not see why."""
UNREAD_S = 5.0
"""How much later a body is cut off that nobody reads: whoever waits for one began a little after its head came."""
_BODY = problems.body(431, "head_too_large", "a request's head may have at most 64 kB").encode()
_TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: application/problem+json\r\nconnection: close\r\n"
    b"content-length: %d\r\n\r\n%b" % (len(_BODY), _BODY)
)


class BoundedHead(HttpToolsProtocol):
    """Counts what arrives until the head is whole; more than `MOST_HEAD`, or longer than `HEAD_S`, ends it.

    A body is timed where it is read, so that its sender is told. But whoever is refused before has theirs read by
    nobody, for as long as they like to send it: that is cut off here, a little later.
    """

    _size = 0
    _requests = 0
    _whole = False
    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self._end_in(HEAD_S)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._size += len(data)
        super().data_received(data)
        if not self._whole and self._size > MOST_HEAD and not self.transport.is_closing():
            self.transport.write(_TOO_LARGE)
            self.transport.pause_reading()
            self._end_in(LINGER_S)

    def on_message_begin(self) -> None:
        # A later head may come in one piece with the end of the body before it, which is none of its size.
        self._size = self._size if self._requests == 0 else 0
        self._requests += 1
        self._whole = False
        self._end_in(HEAD_S)
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._whole = True
        self._end_in(bodies.BODY_S + UNREAD_S)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._stop_waiting()
        super().on_message_complete()

    def _end_in(self, seconds: float) -> None:
        self._stop_waiting()
        self._late = self.loop.call_later(seconds, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

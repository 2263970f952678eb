"""When a request's bytes go out: over a pair of sockets, one end read by the test."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager

import pytest

from workers.providers.sockets import JOINED_BYTES, Cancel, HeldStream, Line, in_call

HEAD = b"POST /v1/messages HTTP/1.1\r\nContent-Length: 2\r\n\r\n"


@contextmanager
def joined() -> Generator[tuple[HeldStream, socket.socket]]:
    """Our end as a call holds it, and the other one, which never waits."""
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    now = time.monotonic()
    line = Line(Cancel(), connect_s=1, write_s=5, between_s=5, next_by=now + 5, ends_at=now + 5, room=1 << 20)
    with ours, theirs, in_call(line):
        yield HeldStream(ours), theirs


def test_a_head_and_its_body_are_one_piece() -> None:
    with joined() as (stream, other):
        stream.write(HEAD)
        with pytest.raises(BlockingIOError):
            other.recv(1)
        stream.write(b"{}")
        assert other.recv(1 << 16) == HEAD + b"{}"


def test_a_head_without_a_body_goes_out_before_the_answer_is_read() -> None:
    with joined() as (stream, other):
        stream.write(HEAD)
        other.send(b"HTTP/1.1 200 OK\r\n\r\n")
        assert stream.read(1 << 16) == b"HTTP/1.1 200 OK\r\n\r\n"
        assert other.recv(1 << 16) == HEAD


@pytest.mark.parametrize("bodies", [[b"x" * (JOINED_BYTES + 1)], [b"POST a", HEAD], [b"a", HEAD, b"b"]])
def test_whatever_is_written_arrives_whole_and_in_order(bodies: list[bytes]) -> None:
    arrived: list[bytes] = []
    with joined() as (stream, other):
        other.settimeout(5)
        wanted = HEAD + b"".join(bodies)

        def read() -> None:
            while sum(map(len, arrived)) < len(wanted):
                arrived.append(other.recv(1 << 16))

        reader = threading.Thread(target=read)
        reader.start()
        for piece in (HEAD, *bodies):
            stream.write(piece)
        with pytest.raises(Exception, match="no time is left"):
            _read_after_the_end(stream)
        reader.join(5)
    assert b"".join(arrived) == wanted


def _read_after_the_end(stream: HeldStream) -> None:
    """A read sends what waits before it looks at the clock."""
    line = stream.hold()
    line.ends_at = time.monotonic()
    stream.read(1)

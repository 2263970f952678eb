"""A small pooler in transaction mode, speaking Postgres' own protocol: the thing that `doctor` has to see through.

Each transaction gets whichever backend was freed last; what a session sets or locks stays with the backend.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Generator
from contextlib import contextmanager

import psycopg

_NOT_ENCRYPTED = {80877103, 80877104}  # SSLRequest, GSSENCRequest
_PARAMETERS = ("server_version", "client_encoding", "integer_datetimes", "standard_conforming_strings")


class Pooler:
    """Listens on `port`. Backends are authenticated by psycopg and then used as bare sockets."""

    def __init__(self, url: str, backends: int) -> None:
        self._connections = [psycopg.connect(url, autocommit=True) for _ in range(backends)]
        first = self._connections[0].info
        self._told = {name: first.parameter_status(name) or "" for name in _PARAMETERS}
        self.user, self.database = first.user, first.dbname
        self._free = [socket.socket(fileno=socket.dup(one.fileno())) for one in self._connections]
        for one in self._free:
            one.setblocking(True)
        self._given = threading.Condition()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"postgresql://{self.user}@127.0.0.1:{self.port}/{self.database}"

    def close(self) -> None:
        self._listener.close()
        for one in self._free:
            one.close()
        for connection in self._connections:
            connection.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client:
            while struct.unpack("!ii", _exactly(client, 8))[1] in _NOT_ENCRYPTED:
                client.sendall(b"N")
            # What came is the head of the startup message; its names and values end with an empty name.
            while _word(client):
                _word(client)
            client.sendall(self._welcome())
            held: socket.socket | None = None
            try:
                while (message := _message(client))[:1] != b"X":
                    held = held or self._take()
                    held.sendall(message)
                    if message[:1] in (b"Q", b"S") and _relay(held, client) == b"I":
                        self._give(held)
                        held = None
            except (ConnectionError, struct.error):
                pass
            if held is not None:
                held.sendall(b"Q" + struct.pack("!i", 13) + b"rollback\0")
                _relay(held, None)
                self._give(held)

    def _welcome(self) -> bytes:
        parts = [_framed(b"R", struct.pack("!i", 0))]
        parts += [_framed(b"S", f"{name}\0{value}\0".encode()) for name, value in self._told.items()]
        return b"".join([*parts, _framed(b"K", struct.pack("!ii", 1, 1)), _framed(b"Z", b"I")])

    def _take(self) -> socket.socket:
        with self._given:
            assert self._given.wait_for(lambda: self._free, 10), "no backend came free"
            return self._free.pop()

    def _give(self, backend: socket.socket) -> None:
        with self._given:
            self._free.append(backend)
            self._given.notify()


def _framed(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!i", len(body) + 4) + body


def _exactly(source: socket.socket, count: int) -> bytes:
    found = b""
    while len(found) < count:
        piece = source.recv(count - len(found))
        if not piece:
            raise ConnectionError
        found += piece
    return found


def _word(source: socket.socket) -> bytes:
    found = b""
    while not found.endswith(b"\0"):
        found += _exactly(source, 1)
    return found[:-1]


def _message(source: socket.socket) -> bytes:
    head = _exactly(source, 5)
    return head + _exactly(source, struct.unpack("!i", head[1:])[0] - 4)


def _relay(backend: socket.socket, client: socket.socket | None) -> bytes:
    """Everything up to the backend's ReadyForQuery, whose transaction status is returned."""
    while True:
        message = _message(backend)
        if client is not None:
            client.sendall(message)
        if message[:1] == b"Z":
            return message[5:6]


@contextmanager
def pooling(url: str, backends: int = 8) -> Generator[Pooler]:
    pooler = Pooler(url, backends)
    try:
        yield pooler
    finally:
        pooler.close()

"""A proxy between a worker and Postgres that loses what it is told to: a reply that never comes, or a statement that
never arrives."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Generator
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from urllib.parse import parse_qs, urlsplit, urlunsplit


class Loss(StrEnum):
    REPLY = "reply"  # the statement reaches the server, its answer does not come back
    STATEMENT = "statement"  # the statement does not reach the server


@dataclass(slots=True)
class Proxy:
    """`lose(patterns, what)` arms it once: bytes that hold each pattern in turn; those that hold the last are lost."""

    url: str
    lost: int = 0
    _armed: tuple[tuple[bytes, ...], Loss] | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def lose(self, patterns: tuple[bytes, ...], what: Loss) -> None:
        with self._lock:
            self._armed = (patterns, what)

    def hit(self, data: bytes) -> Loss | None:
        with self._lock:
            if self._armed is None or self._armed[0][0] not in data:
                return None
            (_, *rest), what = self._armed
            self._armed = (tuple(rest), what) if rest else None
            if not rest:
                self.lost += 1
                return what
        return None


@contextlib.contextmanager
def swallowing(database_url: str, folder: Path) -> Generator[Proxy]:
    """A proxy in front of a server on a unix socket; `Proxy.url` leads through it."""
    parts = urlsplit(database_url)
    upstream = Path(parse_qs(parts.query)["host"][0]) / ".s.PGSQL.5432"
    path = folder / ".s.PGSQL.5432"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen(64)
    proxy = Proxy(urlunsplit(parts._replace(query=f"host={folder}")))
    threading.Thread(target=_accept, args=(listener, upstream, proxy), daemon=True).start()
    try:
        yield proxy
    finally:
        listener.close()
        path.unlink(missing_ok=True)


def _accept(listener: socket.socket, upstream: Path, proxy: Proxy) -> None:
    while True:
        try:
            client, _ = listener.accept()
        except OSError:
            return
        server = socket.socket(socket.AF_UNIX)
        server.connect(str(upstream))
        dead = threading.Event()
        threading.Thread(target=_to_server, args=(client, server, proxy, dead), daemon=True).start()
        threading.Thread(target=_to_client, args=(client, server, dead), daemon=True).start()


def _to_server(client: socket.socket, server: socket.socket, proxy: Proxy, dead: threading.Event) -> None:
    with contextlib.suppress(OSError):
        while data := client.recv(65536):
            what = proxy.hit(data)
            if what is not None:
                dead.set()
            if what is not Loss.STATEMENT:
                server.sendall(data)
            if what is not None:
                _answered_then_closed(client, server, what)
                return
    close_all(client, server)


def _answered_then_closed(client: socket.socket, server: socket.socket, what: Loss) -> None:
    """The server has said its answer (so the work is done there) before the client's connection dies."""
    if what is Loss.REPLY:
        with contextlib.suppress(OSError):
            server.settimeout(5)
            server.recv(65536)
    close_all(client, server)


def _to_client(client: socket.socket, server: socket.socket, dead: threading.Event) -> None:
    with contextlib.suppress(OSError):
        while data := server.recv(65536):
            if dead.is_set():
                break
            client.sendall(data)
    close_all(client, server)


def close_all(*sockets: socket.socket) -> None:
    """Both ways and at once, whoever still reads or writes there."""
    for one in sockets:
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
        one.close()

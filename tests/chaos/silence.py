"""A proxy in front of Valkey that can make one process deaf: what that process listens on goes silent and stays open,
whatever else it says is answered. So it is with a connection whose other end is gone without a word."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from deploy.drill.swallow import close_all

LISTENS = b"BRPOP"


@dataclass(slots=True)
class Silence:
    """`url` leads through the proxy. Pids in `deaf` get no answer where they listen."""

    url: str
    deaf: set[int] = field(default_factory=set[int])


@contextlib.contextmanager
def silencing(redis_url: str, folder: Path) -> Generator[Silence]:
    """A proxy in front of a server on a unix socket, on one of its own in `folder`."""
    parts = urlsplit(redis_url)
    path = folder / "valkey.sock"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen(128)
    made = Silence(urlunsplit(parts._replace(path=str(path))))
    threading.Thread(target=_accept, args=(listener, parts.path, made), daemon=True).start()
    try:
        yield made
    finally:
        listener.close()


def _accept(listener: socket.socket, upstream: str, silence: Silence) -> None:
    while True:
        try:
            client, _ = listener.accept()
        except OSError:
            return
        server = socket.socket(socket.AF_UNIX)
        server.connect(upstream)
        pid = struct.unpack("3i", client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
        listens = threading.Event()
        threading.Thread(target=_ask, args=(client, server, pid, silence, listens), daemon=True).start()
        threading.Thread(target=_answer, args=(client, server, pid, silence, listens), daemon=True).start()


def _ask(client: socket.socket, server: socket.socket, pid: int, silence: Silence, listens: threading.Event) -> None:
    with contextlib.suppress(OSError):
        while data := client.recv(65536):
            if LISTENS in data.upper():
                listens.set()
            if not (listens.is_set() and pid in silence.deaf):
                server.sendall(data)
    close_all(client, server)


def _answer(client: socket.socket, server: socket.socket, pid: int, silence: Silence, listens: threading.Event) -> None:
    with contextlib.suppress(OSError):
        while data := server.recv(65536):
            if not (listens.is_set() and pid in silence.deaf):
                client.sendall(data)
    close_all(client, server)

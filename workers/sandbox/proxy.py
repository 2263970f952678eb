"""What comes out of a run's network by its doorway: HTTP by a proxy, to hosts that the settings name, and no further.

The name is looked up here, once, and judged as the address that is connected to; the same rules as of a page that is
fetched (workers/web). What is inside TLS is not seen: a host that is allowed is allowed whatever is said to it.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field

from workers.tools.context import ToolRefused
from workers.web import target, wire
from workers.web.target import Reach, Target

_MOST_HEAD = 16 << 10
_MOST_AT_ONCE = 32
_MOST_BYTES = 512 << 20
_PATIENCE_S = 60.0
_PORTS = frozenset({80, 443})


@dataclass(slots=True)
class Proxy:
    """Serves one run, in threads of its supervisor, which end with it. `reach.only` names the hosts; without any,
    nothing is let through."""

    door: socket.socket
    reach: Reach
    _left: list[int] = field(default_factory=lambda: [_MOST_BYTES])
    _places: threading.BoundedSemaphore = field(default_factory=lambda: threading.BoundedSemaphore(_MOST_AT_ONCE))

    def begin(self) -> None:
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            self._places.acquire()
            try:
                caller, _ = self.door.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(caller,), daemon=True).start()

    def _serve(self, caller: socket.socket) -> None:
        try:
            with closing(caller), suppress(OSError):
                caller.settimeout(_PATIENCE_S)
                self._answer(caller)
        finally:
            self._places.release()

    def _answer(self, caller: socket.socket) -> None:
        head, rest = _head(caller)
        try:
            method, at, line = _asked(head)
            if not self.reach.only or (at.port not in _PORTS and at.origin not in self.reach.opened):
                raise target.refuse_outside(self.reach.only, at)
            out = wire.connect(at, self.reach, lambda: _PATIENCE_S, wire.look_up)
        except ToolRefused as refused:
            _refuse(caller, "403 Forbidden", refused.message)
            return
        except (OSError, ValueError):
            _refuse(caller, "502 Bad Gateway", "that host cannot be reached")
            return
        with closing(out):
            out.settimeout(_PATIENCE_S)
            if method == "CONNECT":
                caller.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                out.sendall(rest)
            else:
                out.sendall(line + rest)
            self._both_ways(caller, out)

    def _both_ways(self, caller: socket.socket, out: socket.socket) -> None:
        back = threading.Thread(target=self._pass, args=(out, caller), daemon=True)
        back.start()
        self._pass(caller, out)
        back.join(_PATIENCE_S)

    def _pass(self, source: socket.socket, goal: socket.socket) -> None:
        with suppress(OSError):
            while self._left[0] > 0 and (piece := source.recv(65_536)):
                self._left[0] -= len(piece)
                goal.sendall(piece)
        with suppress(OSError):
            goal.shutdown(socket.SHUT_WR)


def _head(caller: socket.socket) -> tuple[bytes, bytes]:
    data = b""
    while b"\r\n\r\n" not in data:
        piece = caller.recv(4096)
        if not piece or len(data) > _MOST_HEAD:
            raise OSError("no request")
        data += piece
    head, _, rest = data.partition(b"\r\n\r\n")
    return head, rest


def _asked(head: bytes) -> tuple[str, Target, bytes]:
    """The method, where to, and the request as the host itself is to get it. Raises ToolRefused or ValueError."""
    first, *lines = head.decode("latin-1").split("\r\n")
    method, where, version = first.split(" ")
    if method == "CONNECT":
        return method, target.parse(f"https://{where}/"), b""
    at = target.parse(where)
    if at.scheme != "http":
        raise ValueError("only plain HTTP is asked of a proxy in the clear")
    kept = [f"{method} {at.path} {version}", *_without_hops(lines), "Connection: close", "", ""]
    return method, at, "\r\n".join(kept).encode("latin-1")


def _without_hops(lines: list[str]) -> Iterator[str]:
    for line in lines:
        if line.partition(":")[0].strip().casefold() not in ("proxy-connection", "connection", "proxy-authorization"):
            yield line


def _refuse(caller: socket.socket, status: str, words: str) -> None:
    body = f"{words}\n".encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    caller.sendall(head.encode() + body)

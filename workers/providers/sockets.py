"""Owns which call holds which socket, so that a cancel frees that reader at once and no other.

Invariant: a socket is shut down only while the call that was cancelled holds it. It is let go before its connection
returns to the pool and before it is closed, so neither a pooled connection's next user nor a reused file number is hit.

Neither `Stream.close()` of the SDK nor `Client.close()` wakes a reader that is blocked in another thread; shutting the
socket down does (shutdown(2)). httpcore's pool runs a call wholly in its caller's thread, so the thread tells the call.
"""

from __future__ import annotations

import contextlib
import queue
import select
import socket
import ssl
import threading
import time
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field
from typing import Any, cast

import httpcore2

Addresses = list[tuple[socket.AddressFamily, socket.SocketKind, int, str, Any]]

KEEPALIVE: tuple[httpcore2.SOCKET_OPTION, ...] = ((socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),)

ERROR_BYTES = 1024 * 1024
ERROR_S = 5.0
JOINED_BYTES = 256 * 1024
"""A body up to this size goes out in one piece with its head; a larger one is not copied for that."""


class Cancel:
    """Ends the calls it was given to, from any thread, within milliseconds. It stays so; the first reason stands."""

    __slots__ = ("_lock", "_reason", "_wakes")

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a signal handler may cancel what this thread is just cancelling
        self._reason: str | None = None
        self._wakes: list[Callable[[], None]] = []

    @property
    def reason(self) -> str | None:
        return self._reason

    def cancel(self, reason: str = "cancelled") -> None:
        with self._lock:
            if self._reason is None:
                self._reason = reason
            for wake in self._wakes:
                wake()

    def watch(self, wake: Callable[[], None]) -> None:
        """`wake` runs under the lock at the cancel, at once if that was before; it must neither block nor raise."""
        with self._lock:
            self._wakes.append(wake)
            if self._reason is not None:
                wake()

    def unwatch(self, wake: Callable[[], None]) -> None:
        """After this returns, `wake` does not run and will not."""
        with self._lock, contextlib.suppress(ValueError):
            self._wakes.remove(wake)


@dataclass(slots=True)
class Line:
    """What one call in flight may still take: time until the next event, time in all, bytes."""

    cancel: Cancel
    connect_s: float
    write_s: float
    between_s: float
    next_by: float
    ends_at: float
    room: int
    flooded: bool = False
    timed_out: str | None = None
    answered: int | None = None
    headers: list[tuple[bytes, bytes]] = field(default_factory=list[tuple[bytes, bytes]])
    stream: HeldStream | None = field(default=None, repr=False)

    def renew(self) -> None:
        """An event came: the next may take `between_s` again."""
        self.next_by = time.monotonic() + self.between_s

    def read_wait_s(self) -> float:
        now = time.monotonic()
        left = min(self.next_by, self.ends_at) - now
        if left <= 0:
            self._time_out()
            raise httpcore2.ReadTimeout("no time is left for this call")
        return left

    def _time_out(self) -> None:
        self.timed_out = "total" if self.ends_at <= self.next_by else "read"

    def took(self, count: int) -> None:
        self.room -= count
        if self.room < 0:
            self.flooded = True
            raise httpcore2.ReadError("the reply is larger than this call accepts")

    def let_go(self) -> None:
        if self.stream is not None:
            self.stream.let_go()


_current = threading.local()


@contextlib.contextmanager
def in_call(line: Line) -> Generator[None]:
    """Every connection that this thread opens, writes or reads inside the block belongs to `line`."""
    _current.line = line
    try:
        yield
    finally:
        line.let_go()
        _current.line = None


def let_go_current() -> None:
    """The call of this thread lets go of its socket."""
    line = cast("Line | None", getattr(_current, "line", None))
    if line is not None:
        line.let_go()


def answered(status: int, headers: list[tuple[bytes, bytes]]) -> None:
    """The status is known. What is no success says the rest in a short text, or the call goes on without it."""
    line = current_line()
    line.answered, line.headers = status, headers
    if status != 200:
        line.room = min(line.room, ERROR_BYTES)
        line.next_by = time.monotonic() + ERROR_S


def current_line() -> Line:
    """The call that this thread is in."""
    line = cast("Line | None", getattr(_current, "line", None))
    if line is None:
        raise RuntimeError("a provider connection was used outside of a call")
    return line


def _shut(sock: socket.socket) -> None:
    # The method of the plain socket: SSLSocket.shutdown also drops its TLS state under the reader's feet.
    with contextlib.suppress(OSError):
        socket.socket.shutdown(sock, socket.SHUT_RDWR)


class HeldStream(httpcore2.NetworkStream):
    """A connected socket. The call that last wrote or read on it holds it."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._holder: Line | None = None
        self._head = b""

    def _shut(self) -> None:
        _shut(self._sock)

    def hold(self) -> Line:
        line = current_line()
        if self._holder is not line:
            self._holder = line
            line.stream = self
            line.cancel.watch(self._shut)
        return line

    def let_go(self) -> None:
        holder, self._holder = self._holder, None
        if holder is not None:
            holder.stream = None
            holder.cancel.unwatch(self._shut)

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002 - the call's own clock decides
        line = self.hold()
        self._flush(line)
        self._sock.settimeout(line.read_wait_s())
        try:
            data = self._sock.recv(max_bytes)
        except TimeoutError as error:
            line.timed_out = "total" if line.ends_at <= line.next_by else "read"
            raise httpcore2.ReadTimeout(str(error)) from error
        except OSError as error:
            raise httpcore2.ReadError(str(error)) from error
        line.took(len(data))
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002 - the call's own clock decides
        """A request's head, which httpcore writes by itself, waits for what follows: sent alone it costs the other side
        a wake-up of its own, and us a system call. Nothing waits longer than to the next write or read."""
        if not buffer:
            return
        line = self.hold()
        if not self._head and buffer.startswith(b"POST ") and buffer.endswith(b"\r\n\r\n"):
            self._head = buffer
        elif self._head and len(buffer) <= JOINED_BYTES:
            head, self._head = self._head, b""
            self._send(head + buffer, line)
        else:
            self._flush(line)
            self._send(buffer, line)

    def _flush(self, line: Line) -> None:
        if self._head:
            head, self._head = self._head, b""
            self._send(head, line)

    def _send(self, buffer: bytes, line: Line) -> None:
        view = memoryview(buffer)
        try:
            while view:
                self._sock.settimeout(line.write_s)
                view = view[self._sock.send(view) :]
        except TimeoutError as error:
            line.timed_out = "write"
            raise httpcore2.WriteTimeout(str(error)) from error
        except OSError as error:
            raise httpcore2.WriteError(str(error)) from error

    def close(self) -> None:
        self.let_go()
        self._sock.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ARG002 - the call's own clock decides
    ) -> httpcore2.NetworkStream:
        line = self.hold()
        self.let_go()
        # Not handshaking inside wrap_socket: it takes the file number from the socket that a cancel would shut down.
        sock = ssl_context.wrap_socket(self._sock, server_hostname=server_hostname, do_handshake_on_connect=False)
        secured = HeldStream(sock)
        secured.hold()
        try:
            sock.settimeout(line.connect_s)
            sock.do_handshake()
        except TimeoutError as error:
            line.timed_out = "connect"
            secured.close()
            raise httpcore2.ConnectTimeout(str(error)) from error
        except OSError as error:
            secured.close()
            raise httpcore2.ConnectError(str(error)) from error
        return secured

    def get_extra_info(self, info: str) -> Any:
        match info:
            case "ssl_object":
                return self._sock if isinstance(self._sock, ssl.SSLSocket) else None
            case "socket":
                return self._sock
            case "is_readable":
                return _readable(self._sock)
            case "client_addr":
                return self._sock.getsockname()
            case "server_addr":
                return self._sock.getpeername()
            case _:
                return None


def _readable(sock: socket.socket) -> bool:
    number = sock.fileno()
    if number < 0:
        return True
    poll = select.poll()
    poll.register(number, select.POLLIN)
    return bool(poll.poll(0))


class HeldBackend(httpcore2.NetworkBackend):
    """Opens sockets so that a cancel also frees a caller that waits for a name or for a connection."""

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ARG002 - the call's own clock decides
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.NetworkStream:
        line = current_line()
        ends_at = time.monotonic() + line.connect_s
        addresses = _resolve(host, port, ends_at, line)
        failure: httpcore2.ConnectError | httpcore2.ConnectTimeout | None = None
        for nth, (family, kind, protocol, _, address) in enumerate(addresses):
            if line.cancel.reason is not None:
                break
            wait_s = (ends_at - time.monotonic()) / (len(addresses) - nth)
            try:
                return _connect(
                    socket.socket(family, kind, protocol), address, wait_s, local_address, socket_options or ()
                )
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = error
        if isinstance(failure, httpcore2.ConnectTimeout):
            line.timed_out = "connect"
        raise failure or httpcore2.ConnectError(f"{host} has no address")


def _connect(
    sock: socket.socket,
    address: Any,
    wait_s: float,
    local_address: str | None,
    options: Iterable[httpcore2.SOCKET_OPTION],
) -> HeldStream:
    stream = HeldStream(sock)
    stream.hold()
    try:
        for option in options:
            _set(sock, option)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if local_address is not None:
            sock.bind((local_address, 0))
        sock.settimeout(max(wait_s, 0.001))
        sock.connect(address)
    except TimeoutError as error:
        stream.close()
        raise httpcore2.ConnectTimeout(str(error)) from error
    except OSError as error:
        stream.close()
        raise httpcore2.ConnectError(str(error)) from error
    return stream


def _set(sock: socket.socket, option: httpcore2.SOCKET_OPTION) -> None:
    if len(option) == 4:
        level, name, _, length = option
        sock.setsockopt(level, name, None, length)
    else:
        level, name, value = option
        sock.setsockopt(level, name, value)


def _resolve(host: str, port: int, ends_at: float, line: Line) -> Addresses:
    """The addresses of `host`. A name is looked up in a thread of its own: getaddrinfo knows no time-out, no cancel."""
    with contextlib.suppress(socket.gaierror):
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    box: queue.SimpleQueue[Addresses | OSError | None] = queue.SimpleQueue()

    def look_up() -> None:
        try:
            box.put(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except (OSError, UnicodeError) as error:
            box.put(error if isinstance(error, OSError) else OSError(str(error)))

    def wake() -> None:
        box.put(None)

    threading.Thread(target=look_up, name="provider-lookup", daemon=True).start()
    line.cancel.watch(wake)
    try:
        found = box.get(timeout=max(ends_at - time.monotonic(), 0.001))
    except queue.Empty as error:
        line.timed_out = "connect"
        raise httpcore2.ConnectTimeout(f"looking up {host} took too long") from error
    finally:
        line.cancel.unwatch(wake)
    if isinstance(found, list):
        return found
    raise httpcore2.ConnectError(f"{host} could not be looked up: {found}" if found else "cancelled")

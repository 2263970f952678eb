"""Owns a server on raw sockets: each request is answered by the script's next act, byte for byte as the test says."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any

Act = Callable[["Exchange"], None]


@dataclass
class Exchange:
    """One request as it came in, and the connection to answer it on."""

    sock: socket.socket
    head: bytes
    body: bytes
    gone: threading.Event

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)

    def wait_for_hang_up(self, seconds: float = 20.0) -> bool:
        """True once the other side has closed or cut the connection."""
        self.sock.settimeout(seconds)
        try:
            return self.sock.recv(1) == b""
        except TimeoutError:
            return False
        except OSError:
            return True


@dataclass
class RawServer:
    """`acts` are used one a request, the last one again and again. `requests` is what arrived."""

    acts: list[Act]
    tls: ssl.SSLContext | None = None
    requests: list[tuple[bytes, bytes]] = field(default_factory=list[tuple[bytes, bytes]])
    connections: int = 0
    url: str = ""
    stopping: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def next_act(self) -> Act:
        with self.lock:
            return self.acts.pop(0) if len(self.acts) > 1 else self.acts[0]


@contextlib.contextmanager
def serving(*acts: Act, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1") -> Generator[RawServer]:
    server = RawServer(list(acts), tls)
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    server.url = f"{'https' if tls else 'http'}://{host}:{listener.getsockname()[1]}"
    open_socks: set[socket.socket] = set()

    def accept() -> None:
        while not server.stopping.is_set():
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            with server.lock:
                server.connections += 1
                open_socks.add(sock)
            threading.Thread(target=_serve, args=(server, sock, open_socks), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.stopping.set()
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        with server.lock:
            left = list(open_socks)
        for sock in left:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        thread.join(5)


def _serve(server: RawServer, sock: socket.socket, open_socks: set[socket.socket]) -> None:
    plain = sock
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if server.tls is not None:
            sock = server.tls.wrap_socket(sock, server_side=True)
        while True:
            arrived = _read_request(sock)
            if arrived is None:
                return
            server.requests.append(arrived)
            server.next_act()(Exchange(sock, *arrived, gone=server.stopping))
    except OSError:
        return
    finally:
        with server.lock:
            open_socks.discard(plain)
        sock.close()


def _read_request(sock: socket.socket) -> tuple[bytes, bytes] | None:
    data = b""
    while b"\r\n\r\n" not in data:
        more = sock.recv(65536)
        if not more:
            return None
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    length = next(
        (int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0
    )
    pieces = [body]
    size = len(body)
    while size < length:
        more = sock.recv(min(length - size, 1 << 20))
        if not more:
            return None
        pieces.append(more)
        size += len(more)
    return head, b"".join(pieces)


# What a provider says


def event(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields}, separators=(',', ':'))}\n\n".encode()


USAGE = {
    "input_tokens": 12,
    "cache_creation_input_tokens": 30,
    "cache_read_input_tokens": 100,
    "cache_creation": {"ephemeral_5m_input_tokens": 10, "ephemeral_1h_input_tokens": 20},
    "output_tokens": 1,
}


def begin(usage: dict[str, Any] | None = None, **message: Any) -> bytes:
    return event(
        "message_start",
        message={
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "claude-sonnet-5-5",
            "content": [],
            "stop_reason": None,
            "usage": USAGE if usage is None else usage,
            **message,
        },
    )


def start(index: int, **block: Any) -> bytes:
    return event("content_block_start", index=index, content_block=block)


def delta(index: int, kind: str, **fields: Any) -> bytes:
    return event("content_block_delta", index=index, delta={"type": kind, **fields})


def stop(index: int) -> bytes:
    return event("content_block_stop", index=index)


def end(reason: str = "end_turn", usage: dict[str, Any] | None = None) -> bytes:
    told = {"output_tokens": 7} if usage is None else usage
    return event("message_delta", delta={"stop_reason": reason, "stop_sequence": None}, usage=told) + event(
        "message_stop"
    )


def text_block(index: int, *pieces: str) -> bytes:
    deltas = b"".join(delta(index, "text_delta", text=piece) for piece in pieces)
    return start(index, type="text", text="") + deltas + stop(index)


def tool_block(index: int, call_id: Any, name: Any, *pieces: str) -> bytes:
    deltas = b"".join(delta(index, "input_json_delta", partial_json=piece) for piece in pieces)
    return start(index, type="tool_use", id=call_id, name=name, input={}) + deltas + stop(index)


def thinking_block(index: int, signature: str, *pieces: str) -> bytes:
    deltas = b"".join(delta(index, "thinking_delta", thinking=piece) for piece in pieces)
    signed = delta(index, "signature_delta", signature=signature)
    return start(index, type="thinking", thinking="", signature="") + deltas + signed + stop(index)


STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\nrequest-id: req_1\r\n"
    b"anthropic-ratelimit-requests-remaining: 41\r\ntransfer-encoding: chunked\r\n\r\n"
)


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


LAST_CHUNK = b"0\r\n\r\n"


def streamed(*parts: bytes, head: bytes = STREAM_HEAD, last: bytes = LAST_CHUNK) -> Act:
    """A whole stream in one write."""
    whole = head + b"".join(chunk(part) for part in parts if part) + last
    return lambda exchange: exchange.send(whole)


def saying(*texts: str) -> Act:
    return streamed(begin(), text_block(0, *texts), end())


def answering(status: int, body: bytes, *headers: bytes, kind: bytes = b"application/json") -> Act:
    head = b"HTTP/1.1 %d Said\r\ncontent-type: %s\r\ncontent-length: %d\r\n" % (status, kind, len(body))
    whole = head + b"".join(header + b"\r\n" for header in headers) + b"\r\n" + body
    return lambda exchange: exchange.send(whole)


def refusing(status: int, kind: str, message: str, *headers: bytes, **fields: Any) -> Act:
    told = {"type": "error", "error": {"type": kind, "message": message, **fields}, "request_id": "req_err"}
    return answering(status, json.dumps(told).encode(), *headers)


def raw(*parts: bytes, then_close: bool = True) -> Act:
    def act(exchange: Exchange) -> None:
        exchange.send(b"".join(parts))
        if then_close:
            exchange.sock.shutdown(socket.SHUT_RDWR)

    return act


def stalling(*parts: bytes, reached: threading.Event | None = None) -> Act:
    """Sends, then says nothing more until the other side hangs up."""

    def act(exchange: Exchange) -> None:
        exchange.send(b"".join(parts))
        if reached is not None:
            reached.set()
        exchange.wait_for_hang_up()

    return act


def flooding(first: bytes, again: bytes) -> Act:
    def act(exchange: Exchange) -> None:
        exchange.send(first)
        while not exchange.gone.is_set():
            exchange.send(again)

    return act

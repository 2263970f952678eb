"""A web server on loopback that says what a test wants it to say."""

from __future__ import annotations

import contextlib
import gzip
import threading
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[[BaseHTTPRequestHandler], None]


@dataclass
class Site:
    """`pages` by path; `asked` are the paths that came."""

    port: int
    pages: dict[str, Answer] = field(default_factory=dict[str, Answer])
    asked: list[str] = field(default_factory=list[str])

    @property
    def origin(self) -> str:
        return f"127.0.0.1:{self.port}"

    def url(self, path: str = "/") -> str:
        return f"http://{self.origin}{path}"

    def serve(self, path: str, body: bytes | str, kind: str = "text/html; charset=utf-8", **headers: str) -> None:
        data = body.encode() if isinstance(body, str) else body
        self.pages[path] = says(
            200, data, {"Content-Type": kind, **{k.replace("_", "-"): v for k, v in headers.items()}}
        )

    def redirect(self, path: str, to: str, status: int = 302) -> None:
        self.pages[path] = says(status, b"", {"Location": to})


def says(status: int, data: bytes, headers: dict[str, str]) -> Answer:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)

    return answer


def drips(handler: BaseHTTPRequestHandler) -> None:
    """A byte now and then, for ever."""
    handler.send_response(200)
    handler.send_header("Content-Type", "text/plain")
    handler.end_headers()
    with contextlib.suppress(OSError):
        while True:
            handler.wfile.write(b"x")
            handler.wfile.flush()
            time.sleep(0.2)


def pours(handler: BaseHTTPRequestHandler) -> None:
    """As much as is taken, up to a gigabyte."""
    handler.send_response(200)
    handler.send_header("Content-Type", "text/plain")
    handler.end_headers()
    with contextlib.suppress(OSError):
        for _ in range(16_384):
            handler.wfile.write(b"words and words\n" * 4096)


def bomb() -> bytes:
    """A hundred megabytes, in a hundred kilobytes."""
    return gzip.compress(b"a" * 100_000_000, 9)


@contextlib.contextmanager
def serving() -> Generator[Site]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            site.asked.append(self.path)
            page = site.pages.get(self.path, says(404, b"nothing here", {"Content-Type": "text/plain"}))
            page(self)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name there
            del format, args

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    site = Site(server.server_address[1])
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()

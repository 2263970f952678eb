"""The way out of a run's network: closed unless hosts are named, and then to those and nowhere else."""

from __future__ import annotations

import threading
from collections.abc import Generator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import cast
from uuid import uuid4

import pytest

from shared.boottime import boottime
from shared.sandbox.tiers import Tier
from shared.settings import Settings
from shared.store.pool import Database
from shared.values import Repeat
from workers.tools import terminal
from workers.tools.context import Store, ToolContext

pytestmark = pytest.mark.wall(Tier.ISOLATED)

ASK = """python3 - <<'END'
import sys, urllib.request
for url in {urls!r}:
    try:
        print(urllib.request.urlopen(url, timeout=10).read().decode())
    except Exception as error:
        said = error.read().decode().strip() if hasattr(error, "read") else error
        print(type(error).__name__, getattr(error, "code", ""), said)
END"""


class Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = f"hello from {self.headers['Host']} {self.path}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
        pass


@pytest.fixture(scope="module")
def port() -> Generator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


def run(workspace: Path, command: str, **settings: str) -> str:
    made = Settings.model_validate(settings)
    # The settings are all that is read of it here; a run in the foreground writes no row.
    store = Store(cast("Database", None), made, uuid4(), uuid4(), 0, "night")
    context = ToolContext("s", "t", 1, 0, workspace, None, lambda: False, boottime() + 60, repeat=Repeat.ONCE)
    return terminal.run(replace(context, store=store), {"command": command}).text


def test_without_hosts_there_is_no_network_and_no_proxy(tmp_path: Path, port: int) -> None:
    text = run(tmp_path, "env | grep -i proxy; " + ASK.format(urls=[f"http://127.0.0.1:{port}/"]))
    assert text.startswith("URLError")
    assert "hello" not in text


def test_a_host_of_another_profile_opens_nothing(tmp_path: Path, port: int) -> None:
    """The session's profile is `night`."""
    here = f"localhost:{port}"
    ask = "env | grep -ci proxy; " + ASK.format(urls=[f"http://{here}/"])
    text = run(tmp_path, ask, sandbox_hosts="day=localhost", web_open_hosts=here)
    assert text.splitlines()[0] == "0"
    assert "hello" not in text
    assert "hello" in run(tmp_path, ask, sandbox_hosts="day=example.org, night=localhost", web_open_hosts=here)


def test_a_host_that_is_named_is_reached_and_no_other(tmp_path: Path, port: int) -> None:
    here = f"localhost:{port}"
    urls = [f"http://{here}/a?b=c", "http://example.org/", "https://example.org/", f"http://127.0.0.1:{port}/"]
    text = run(tmp_path, ASK.format(urls=urls), sandbox_hosts="localhost", web_open_hosts=here)
    lines = text.splitlines()
    assert lines[0] == f"hello from {here} /a?b=c"
    assert lines[1].startswith("HTTPError 403 example.org is not among the hosts")
    assert lines[2].startswith("URLError")
    assert "403 Forbidden" in lines[2]
    assert lines[3].startswith("HTTPError 403 ")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "169.254.169.254", "[::1]", "10.0.0.1"])
def test_a_name_that_is_allowed_and_stands_for_an_inner_address_is_refused(tmp_path: Path, host: str) -> None:
    text = run(tmp_path, ASK.format(urls=[f"http://{host}/"]), sandbox_hosts=host.strip("[]"))
    assert text.startswith("HTTPError 403 ")
    assert "which is not fetched from" in text


def test_a_port_that_is_not_the_webs_is_refused(tmp_path: Path) -> None:
    text = run(tmp_path, ASK.format(urls=["http://example.org:5432/"]), sandbox_hosts="example.org")
    assert text.startswith("HTTPError 403 ")


@pytest.mark.parametrize(
    "junk", ["GET / HTTP/1.1\\r\\n\\r\\n", "CONNECT\\r\\n\\r\\n", "x" * 20_000, "\\x00\\xff\\r\\n\\r\\n"]
)
def test_what_is_no_request_to_a_proxy_is_no_way_out(tmp_path: Path, junk: str) -> None:
    code = (
        "import socket; s = socket.create_connection(('127.0.0.1', 3128), 5)\n"
        f"s.sendall('{junk}'.encode('latin-1')); s.shutdown(1)\n"
        "print('said', s.recv(100))"
    )
    text = run(tmp_path, f'python3 - <<"END"\n{code}\nEND', sandbox_hosts="example.org")
    assert "200" not in text
    assert "hello" not in text


def test_the_doorway_closes_with_the_run(tmp_path: Path, port: int) -> None:
    here = f"localhost:{port}"
    settings = {"sandbox_hosts": "localhost", "web_open_hosts": here}
    assert "[exit 0" in run(tmp_path, "true", **settings)
    assert run(tmp_path, ASK.format(urls=[f"http://{here}/"]), **settings).startswith("hello")

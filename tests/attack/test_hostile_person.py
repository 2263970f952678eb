"""A person with a member's token who wants the house to stand still."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Generator

import pytest

from api.bodies import parse
from api.wire.asked import SessionAsked, TurnAsked
from deploy.local.servers import Servers
from shared.errors import Refused
from tests.api.conftest import fresh_database
from tests.api.serving import Api, serving, settings_for


@pytest.fixture(scope="module")
def api(servers: Servers, template: str, tmp_path_factory: pytest.TempPathFactory) -> Generator[Api]:
    home = tmp_path_factory.mktemp("home")
    with fresh_database(servers, template) as url, serving(settings_for(url, servers.valkey.url, home)) as running:
        yield running


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(b'{"input":[' + b"0," * 2_000_000 + b"0]}", id="zeros where blocks belong"),
        pytest.param(b'{"input":[' + b"[]," * 1_000_000 + b"0]}", id="empty lists"),
        pytest.param(b"{" + b",".join(b'"%d":0' % n for n in range(400_000)) + b"}", id="unknown fields"),
    ],
)
def test_a_body_of_millions_of_values_is_refused_before_they_are_made(raw: bytes) -> None:
    began = time.thread_time()
    with pytest.raises(Refused) as refused:
        parse(raw, TurnAsked)
    assert (refused.value.code, refused.value.status) == ("body_invalid", 422)
    assert time.thread_time() - began < 1.0


def test_a_text_may_hold_as_many_commas_and_brackets_as_it_likes() -> None:
    text = r"a,[{\",\\" * 300_000
    found = parse(b'{"input":"' + text.encode() + b'"}', TurnAsked)
    assert found.input == text.replace(r"\"", '"').replace("\\\\", "\\")
    blocks = b",".join(b'{"type":"text","text":"%d"}' % n for n in range(1000))
    assert len(parse(b'{"input":[' + blocks + b"]}", TurnAsked).input) == 1000
    assert parse(b" ", SessionAsked).title == ""


def _told(api: Api, first: bytes, again: bytes, most: int) -> tuple[int, bytes]:
    """How much an API without a token takes in of a head that never ends, and what it says to that."""
    host, port = api.url.removeprefix("http://").split(":")
    sent = 0
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(first)
        try:
            while sent < most:
                connection.sendall(again)
                sent += len(again)
            return sent, connection.recv(400)
        except ConnectionError:
            return sent, b""


@pytest.mark.parametrize(
    ("first", "again"),
    [
        pytest.param(b"GET /healthz?", b"a=b&" * 10_000, id="an address"),
        pytest.param(b"GET /healthz HTTP/1.1\r\nhost: x\r\na: ", b"a" * 40_000, id="one header"),
        pytest.param(b"GET /healthz HTTP/1.1\r\nhost: x\r\n", b"a: b\r\n" * 7_000, id="many headers"),
    ],
)
def test_a_head_without_an_end_is_cut_off(api: Api, first: bytes, again: bytes) -> None:
    sent, _ = _told(api, first, again, 32_000_000)
    assert sent < 16_000_000  # what the sockets on both sides hold, not what we keep
    _, answer = _told(api, first, again, 120_000)
    assert answer.startswith(b"HTTP/1.1 431 ")
    assert b"head_too_large" in answer


def test_a_client_that_sends_no_whole_head_is_sent_away(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api.heads.HEAD_S", 0.2)
    host, port = api.url.removeprefix("http://").split(":")
    for begun in (b"", b"GET /healthz HTTP/1.1\r\n", b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\nGET /he"):
        with socket.create_connection((host, int(port)), timeout=10) as connection:
            connection.sendall(begun)
            while connection.recv(4096):
                pass


def test_a_large_body_behind_a_small_head_is_no_large_head(api: Api) -> None:
    anna = api.person("anna")
    with anna.http as http:
        for _ in range(2):
            assert http.post("/v1/sessions", content=b'{"title":"x"}' + b" " * 1_000_000).status_code == 201


def _dripped(api: Api, head: bytes, seconds: float = 15.0) -> bytes:
    """What an API says to a body that comes byte by byte, before it ends the connection."""
    host, port = api.url.removeprefix("http://").split(":")
    said, began = b"", time.monotonic()
    with socket.create_connection((host, int(port)), timeout=0.05) as connection:
        connection.sendall(head)
        while time.monotonic() - began < seconds:
            try:
                connection.sendall(b" ")
                got = connection.recv(4096)
            except TimeoutError:
                continue
            except ConnectionError:
                return said
            if not got:
                return said
            said += got
    raise AssertionError(f"still open after {seconds} s")


def test_a_body_that_comes_too_slowly_is_refused_and_its_connection_closed(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("api.bodies.BODY_S", 0.5)
    token = api.person("anna").token
    for length in ("content-length: 10000000", "transfer-encoding: chunked"):
        head = f"POST /v1/sessions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n{length}\r\n\r\n"
        said = _dripped(api, head.encode() + (b"800000\r\n" if "chunked" in length else b""))
        assert said.startswith(b"HTTP/1.1 408 "), said
        assert b'"code":"body_too_slow"' in said
        assert b"application/problem+json" in said
        assert b"connection: close" in said.lower()


@pytest.mark.parametrize("head", [b"POST /v1/sessions", b"POST /nothing/here", b"GET /healthz"])
def test_a_body_that_nobody_reads_holds_no_connection_either(
    api: Api, monkeypatch: pytest.MonkeyPatch, head: bytes
) -> None:
    monkeypatch.setattr("api.bodies.BODY_S", 0.5)
    monkeypatch.setattr("api.heads.UNREAD_S", 0.5)
    said = _dripped(api, head + b" HTTP/1.1\r\nhost: x\r\ncontent-length: 10000000\r\n\r\n")
    assert said.startswith(b"HTTP/1.1 ")


def test_the_time_for_a_body_ends_with_it(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api.bodies.BODY_S", 0.2)
    monkeypatch.setattr("api.heads.UNREAD_S", 0.1)
    host, port = api.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        for _ in range(2):
            connection.sendall(b"POST /v1/sessions HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}")
            answer = b""
            while not answer.endswith(b"}"):  # head and body may come apart
                answer += connection.recv(4096)
            assert answer.startswith(b"HTTP/1.1 401 ")
            threading.Event().wait(0.8)  # idle, as between two requests of an honest client

"""A cancel from another thread frees its reader at once, wherever it waits, and touches no other call."""

from __future__ import annotations

import random
import socket
import ssl
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.providers.caller import calling, client_of
from tests.providers.raw_server import (
    STREAM_HEAD,
    Act,
    Exchange,
    begin,
    chunk,
    delta,
    end,
    saying,
    serving,
    stalling,
    start,
    stop,
    text_block,
)
from workers.providers import sockets, wire
from workers.providers.replies import Reply, TextDelta, Usage

SOON_S = 0.25
"""The mark is 50 ms; the bound leaves room for a machine busy with other tests. Who is not freed waits 90 s."""

HALF = begin() + start(0, type="text", text="") + delta(0, "text_delta", text="so far")


def in_background(
    client: wire.Client, cancel: wire.Cancel, body: bytes = b"{}"
) -> tuple[Future[Reply], ThreadPoolExecutor]:
    pool = ThreadPoolExecutor(1)
    return pool.submit(wire.stream, client, body, sink=lambda _: None, cancel=cancel), pool


def cut(future: Future[Reply], cancel: wire.Cancel, reason: str = "a person stopped it") -> tuple[wire.CallCut, float]:
    began = time.monotonic()
    cancel.cancel(reason)
    with pytest.raises(wire.CallCut) as caught:
        future.result(30)
    return caught.value, time.monotonic() - began


@pytest.mark.parametrize(
    ("said", "text", "usage"),
    [
        (b"", "", None),
        (b"HTTP/1.1 200 OK\r\ncontent-type: text/e", "", None),
        (STREAM_HEAD, "", None),
        (STREAM_HEAD + chunk(HALF), "so far", Usage(12, 1, 100, 10, 20)),
    ],
    ids=["before the head", "inside the head", "after the head", "inside the body"],
)
def test_a_blocked_reader_is_freed_at_once(said: bytes, text: str, usage: Usage | None) -> None:
    reached = threading.Event()
    with calling(stalling(said, reached=reached), saying("next")) as caller:
        cancel = wire.Cancel()
        future, _ = in_background(caller.client, cancel)
        assert reached.wait(10)
        time.sleep(0.05)  # until the reader waits; a cancel that comes sooner is the easier case, tested below
        error, seconds = cut(future, cancel)
        assert seconds < SOON_S
        assert (error.reason, error.partial.text, error.partial.usage) == ("a person stopped it", text, usage)
        assert caller.call().text == "next"


def test_a_call_that_was_cancelled_before_it_began_sends_nothing() -> None:
    with calling(saying("x")) as caller:
        cancel = wire.Cancel()
        cancel.cancel("too late")
        with pytest.raises(wire.CallCut, match="too late"):
            caller.call(cancel=cancel)
        assert caller.server.requests == []


def test_a_cancel_from_the_sink_ends_the_call_after_that_delta() -> None:
    cancel = wire.Cancel()
    seen: list[str] = []

    def sink(one: object) -> None:
        if isinstance(one, TextDelta):
            seen.append(one.text)
            cancel.cancel("enough")

    with calling(stalling(STREAM_HEAD, chunk(HALF))) as caller, pytest.raises(wire.CallCut):
        wire.stream(caller.client, b"{}", sink=sink, cancel=cancel)
    assert seen == ["so far"]


def test_a_cancel_after_the_last_event_does_not_take_the_reply() -> None:
    reached = threading.Event()
    whole = begin() + text_block(0, "x") + end()
    with calling(stalling(STREAM_HEAD, chunk(whole), reached=reached), saying("next")) as caller:
        cancel = wire.Cancel()
        future, _ = in_background(caller.client, cancel)
        assert reached.wait(10)
        time.sleep(0.1)
        cancel.cancel()
        assert future.result(5).text == "x"
        assert caller.call().text == "next"


def test_a_caller_who_waits_for_a_connection_is_freed() -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        port = full.getsockname()[1]
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", port))
        with client_of(f"http://127.0.0.1:{port}") as client:
            cancel = wire.Cancel()
            future, _ = in_background(client, cancel)
            time.sleep(0.2)
            assert not future.done()
            _, seconds = cut(future, cancel)
            assert seconds < SOON_S
        for filler in fillers:
            filler.close()


def test_a_caller_who_waits_for_a_name_is_freed(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = threading.Event()
    release = threading.Event()
    real = socket.getaddrinfo

    def slow(host: str, *rest: object, **more: object) -> object:
        if host != "slow.test" or more.get("flags"):
            return real(host, *rest, **more)  # pyright: ignore[reportArgumentType] - passed on
        looked.set()
        release.wait(10)
        raise socket.gaierror(-2, "unknown")

    monkeypatch.setattr(sockets.socket, "getaddrinfo", slow)
    with client_of("http://slow.test") as client:
        cancel = wire.Cancel()
        future, _ = in_background(client, cancel)
        assert looked.wait(10)
        _, seconds = cut(future, cancel)
        release.set()
    assert seconds < SOON_S


def test_a_caller_whose_body_nobody_reads_is_freed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with client_of(url) as client:
            cancel = wire.Cancel()
            future, _ = in_background(client, cancel, b"x" * (64 << 20))
            time.sleep(0.3)
            assert not future.done()
            _, seconds = cut(future, cancel)
    assert seconds < SOON_S


def test_a_secure_call_is_freed_in_its_handshake_and_in_its_body() -> None:

    authority = Path(__file__).with_name("localhost.pem")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority)
    reached = threading.Event()
    with (
        serving(stalling(STREAM_HEAD, chunk(HALF), reached=reached), tls=context, host="localhost") as server,
        client_of(server.url, ca_file=str(authority)) as client,
    ):
        cancel = wire.Cancel()
        future, _ = in_background(client, cancel)
        assert reached.wait(10)
        time.sleep(0.05)
        error, seconds = cut(future, cancel)
        assert seconds < SOON_S
        assert error.partial.text == "so far"
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"https://localhost:{silent.getsockname()[1]}"
        with client_of(url, ca_file=str(authority)) as client:
            cancel = wire.Cancel()
            future, _ = in_background(client, cancel)
            accepted, _ = silent.accept()
            time.sleep(0.1)
            _, seconds = cut(future, cancel)
            accepted.close()
    assert seconds < SOON_S


def paced(exchange: Exchange) -> None:
    """Says its own name in six pieces, so that many calls stand open at once."""
    name = exchange.body.decode()
    try:
        exchange.send(STREAM_HEAD + chunk(begin() + start(0, type="text", text="")))
        for _ in range(6):
            exchange.gone.wait(0.02)
            exchange.send(chunk(delta(0, "text_delta", text=name)))
        exchange.send(chunk(stop(0) + end()) + b"0\r\n\r\n")
    except OSError:
        return


def test_a_call_lets_go_of_its_socket_before_the_pool_may_give_it_to_another(monkeypatch: pytest.MonkeyPatch) -> None:
    when_let_go: list[tuple[int, int]] = []
    real = sockets.Cancel.unwatch

    def unwatch(self: wire.Cancel, wake: object) -> None:
        when_let_go.append((caller.client.connections.busy, caller.client.connections.idle))
        real(self, wake)  # pyright: ignore[reportArgumentType] - passed on

    with calling(saying("x")) as caller:
        monkeypatch.setattr(sockets.Cancel, "unwatch", unwatch)
        caller.call()
        assert (caller.client.connections.busy, caller.client.connections.idle) == (0, 1)
    assert when_let_go == [(1, 0)]


@pytest.mark.timeout(120)
def test_among_many_calls_only_the_right_ones_are_cut() -> None:
    """Cancels fall at every moment, also while a connection goes back to the pool or out of it to the next call."""
    rng = random.Random(11)
    rounds, threads = 12, 32

    def one(client: wire.Client, name: str, cancel: wire.Cancel) -> str:
        try:
            return wire.stream(client, name.encode(), sink=lambda _: None, cancel=cancel).text
        except wire.CallCut:
            return "cut"

    act: Act = paced
    with calling(act) as caller, ThreadPoolExecutor(threads) as pool:
        jobs: list[tuple[str, wire.Cancel, Future[str]]] = []
        timers: list[threading.Timer] = []
        doomed: set[str] = set()
        for nth in range(rounds * threads):
            name, cancel = f"<{nth}>", wire.Cancel()
            if nth % 3 == 0:
                doomed.add(name)
                timer = threading.Timer(rng.random() * 2.0, cancel.cancel)
                timer.start()
                timers.append(timer)
            jobs.append((name, cancel, pool.submit(one, caller.client, name, cancel)))
        outcomes = {name: future.result(60) for name, _, future in jobs}
        for timer in timers:
            timer.join(10)
        spared = {name: text for name, text in outcomes.items() if name not in doomed}
        assert spared == {name: name * 6 for name in spared}
        assert all(outcomes[name] in ("cut", name * 6) for name in doomed)
        assert 10 < sum(text == "cut" for text in outcomes.values()) < len(doomed)
        # The pool holds only idle connections that work, and every call after that goes well.
        assert caller.client.connections.busy == 0
        for nth in range(threads):
            assert one(caller.client, f"({nth})", wire.Cancel()) == f"({nth})" * 6
        assert caller.client.connections.idle <= threads


def descriptors() -> int:
    return len(list(Path("/dev/fd").iterdir()))


def test_two_thousand_calls_leak_no_socket_and_no_thread() -> None:
    def leaky(exchange: Exchange) -> None:
        match len(exchange.body) % 4:
            case 0:
                saying("x")(exchange)
            case 1:
                exchange.send(STREAM_HEAD + chunk(HALF))
                exchange.sock.shutdown(socket.SHUT_RDWR)
            case 2:
                exchange.send(b"HTTP/1.1 529 Busy\r\ncontent-length: 0\r\n\r\n")
            case _:
                exchange.send(STREAM_HEAD + chunk(HALF))
                exchange.wait_for_hang_up()

    def run(client: wire.Client, count: int) -> None:
        for nth in range(count):
            cancel = wire.Cancel()

            def sink(one: object, cancel: wire.Cancel = cancel, nth: int = nth) -> None:
                if nth % 4 == 3 and isinstance(one, TextDelta):
                    cancel.cancel()

            try:
                wire.stream(client, b"x" * (4 + nth % 4), sink=sink, cancel=cancel)
            except (wire.CallFailed, wire.CallCut):
                continue

    with calling(leaky) as caller:
        run(caller.client, 40)
        before = descriptors(), threading.active_count()
        run(caller.client, 2_000)
        deadline = time.monotonic() + 10
        while (descriptors(), threading.active_count()) > before and time.monotonic() < deadline:
            threading.Event().wait(0.05)  # the server's own threads are still closing
        assert descriptors() <= before[0] + 2
        assert threading.active_count() <= before[1] + 2
        assert (caller.client.connections.busy, caller.client.connections.idle) in ((0, 0), (0, 1))

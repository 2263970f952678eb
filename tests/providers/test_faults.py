"""Every way a call can go wrong, caused from outside over real sockets: one error, a stable code, a sentence."""

from __future__ import annotations

import gzip
import logging
import random
import socket
import ssl
import threading
import time
import traceback
from pathlib import Path

import pytest

from deploy.drill.rig import slack
from shared.errors import SettingsError
from tests.providers.caller import KEY, Caller, calling, client_of
from tests.providers.raw_server import (
    LAST_CHUNK,
    STREAM_HEAD,
    Act,
    Exchange,
    answering,
    begin,
    chunk,
    delta,
    end,
    event,
    flooding,
    raw,
    refusing,
    saying,
    serving,
    stalling,
    start,
    stop,
    streamed,
    text_block,
)
from workers.providers import assembly, events, sockets, wire
from workers.providers.failures import classify
from workers.providers.replies import Usage

QUICK = wire.Timeouts(first_byte_s=0.2, between_s=0.2, total_s=5.0, connect_s=0.5, write_s=0.5)
HALF = begin() + start(0, type="text", text="") + delta(0, "text_delta", text="so far")
EVENT_STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"


def overloaded_within() -> bytes:
    told = {"type": "overloaded_error", "message": "Overloaded"}
    return event("error", error=told, request_id="req_in")


WITHIN_A_STREAM: list[tuple[str, Act, str]] = [
    ("it ends without its last event", streamed(HALF, stop(0)), "provider_cut"),
    (
        "it ends before the last event's last line",
        streamed(HALF, stop(0), b'event: message_stop\ndata: {"ty'),
        "provider_cut",
    ),
    ("the connection closes in the middle", raw(STREAM_HEAD, chunk(HALF)), "provider_cut"),
    ("the connection closes inside a chunk", raw(STREAM_HEAD, chunk(HALF), b"400\r\ndata: {"), "provider_cut"),
    ("a chunk has no length", raw(STREAM_HEAD, chunk(HALF), b"xyz\r\n\r\n"), "provider_cut"),
    ("it says an error", streamed(HALF, overloaded_within()), "overloaded_error"),
    ("it says what is no JSON", streamed(HALF, b"data: {nonsense\n\n"), "provider_bad_stream"),
    ("it says a JSON that is no object", streamed(HALF, b"data: [1]\n\n"), "provider_bad_stream"),
    ("it says an object without a type", streamed(HALF, b'data: {"a":1}\n\n'), "provider_bad_stream"),
    ("it says bad UTF-8", streamed(HALF, b'data: {"type":"\xff\xfe"}\n\n'), "provider_bad_stream"),
    ("it says a NaN", streamed(HALF, b'data: {"type":"ping","x":NaN}\n\n'), "provider_bad_stream"),
    ("it begins twice", streamed(HALF, begin()), "provider_bad_stream"),
    ("it jumps over a block", streamed(HALF, start(7, type="text", text="")), "provider_bad_stream"),
    ("a delta names no block", streamed(HALF, delta(3, "text_delta", text="x")), "provider_bad_stream"),
    ("a delta of another kind", streamed(HALF, delta(0, "input_json_delta", partial_json="{")), "provider_bad_stream"),
    ("a delta is no text", streamed(HALF, delta(0, "text_delta", text=5)), "provider_bad_stream"),
    ("a block that is closed goes on", streamed(HALF, stop(0), stop(0)), "provider_bad_stream"),
    ("a block that nobody asked for", streamed(HALF, stop(0), start(1, type="server_tool_use")), "unexpected_block"),
]


@pytest.mark.parametrize(("act", "code"), [case[1:] for case in WITHIN_A_STREAM], ids=[c[0] for c in WITHIN_A_STREAM])
def test_a_stream_that_breaks_is_a_cut_with_what_was_said_so_far(act: Act, code: str) -> None:
    with calling(act, saying("next")) as caller:
        error = caller.fails()
        assert isinstance(error, wire.ProviderCut)
        assert error.code == code
        assert error.partial.text == "so far"
        assert error.partial.usage == Usage(12, 1, 100, 10, 20)
        assert error.request_id in ("req_1", "req_in")
        assert caller.shown == "so far"
        assert caller.call().text == "next"


BEFORE_A_STREAM: list[tuple[str, Act, str, bool]] = [
    ("a page", answering(200, b"<html>hello</html>", kind=b"text/html"), "provider_not_a_stream", False),
    ("a whole message", answering(200, b'{"type":"message","content":[]}'), "provider_not_a_stream", False),
    (
        "an error inside a 200",
        answering(200, b'{"error":{"type":"overloaded_error","message":"x"}}'),
        "overloaded_error",
        True,
    ),
    ("nothing in a 200", answering(200, b""), "provider_empty", True),
    ("an empty stream", streamed(b""), "provider_empty", True),
    ("no content", raw(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n"), "provider_empty", True),
    ("a stop before its start", streamed(event("message_stop")), "provider_bad_stream", True),
    ("a redirect", answering(307, b"", b"location: http://127.0.0.1:9/"), "http_307", False),
    ("a page with a 404", answering(404, b"<h1>no</h1>", kind=b"text/html"), "http_404", False),
    ("a 503 with half a body", raw(b"HTTP/1.1 503 No\r\ncontent-length: 99\r\n\r\nhalf"), "http_503", True),
    ("a 500 that is no JSON", answering(500, b"\xff\xfe{{{"), "http_500", True),
    ("a 529 with a list", answering(529, b"[1,2]"), "http_529", True),
    ("a hang up", raw(b""), "provider_connection_lost", True),
    ("half a head", raw(b"HTTP/1.1 200 OK\r\ncontent-ty"), "provider_connection_lost", True),
    ("no HTTP", raw(b"SSH-2.0-OpenSSH_9.2\r\n\r\n"), "provider_connection_lost", True),
    (
        "a head without end",
        flooding(b"HTTP/1.1 200 OK\r\n", b"x-a: " + b"a" * 4096 + b"\r\n"),
        "provider_connection_lost",
        True,
    ),
    ("a 200 that is gzip", answering(200, gzip.compress(b"x"), b"content-encoding: gzip"), "provider_encoded", False),
]


@pytest.mark.parametrize(
    ("act", "code", "retry"), [case[1:] for case in BEFORE_A_STREAM], ids=[c[0] for c in BEFORE_A_STREAM]
)
def test_an_answer_that_is_no_stream_is_one_error_and_the_next_call_goes_well(act: Act, code: str, retry: bool) -> None:
    with calling(act, saying("next")) as caller:
        error = caller.fails()
        assert (error.code, type(error)) == (code, wire.CallFailed)
        assert not error.partial.began
        assert classify(error).retry is retry
        assert classify(error).fatal is not retry
        assert error.message[0].islower() or error.message.startswith("NIGHTSHIFT")
        assert caller.call().text == "next"


def test_a_refusal_tells_its_status_its_kind_its_words_and_its_request() -> None:
    told = refusing(
        429,
        "rate_limit_error",
        "slow down",
        b"retry-after: 7",
        b"request-id: req_h",
        b"anthropic-ratelimit-tokens-limit: 9",
    )
    with calling(told) as caller:
        error = caller.fails()
    assert (error.code, error.http_status, error.kind, error.said) == (
        "rate_limit_error",
        429,
        "rate_limit_error",
        "slow down",
    )
    assert (error.request_id, error.retry_after_s) == ("req_h", 7.0)
    assert error.limits == (("retry-after", "7"), ("anthropic-ratelimit-tokens-limit", "9"))


def test_a_redirect_is_not_followed() -> None:
    with calling(answering(307, b"", b"location: /elsewhere"), saying("stolen")) as caller:
        assert caller.fails().code == "http_307"
        assert len(caller.server.requests) == 1


def test_a_stable_code_of_the_provider_is_ours() -> None:
    told = refusing(400, "invalid_request_error", "no", details={"error_code": "compaction_content_mismatch"})
    with calling(told, refusing(400, "A B\n", "no")) as caller:
        assert caller.fails().code == "compaction_content_mismatch"
        assert caller.fails().code == "http_400"


STREAM_ERRORS = [
    ("invalid_request_error", "prompt is too long: 5 tokens > 4 maximum", "context_overflow"),
    ("authentication_error", "no", "authentication_error"),
]


@pytest.mark.parametrize(("kind", "words", "code"), STREAM_ERRORS)
def test_an_error_event_first_thing_in_a_stream_is_judged_like_its_status(kind: str, words: str, code: str) -> None:
    with calling(streamed(event("error", error={"type": kind, "message": words}))) as caller:
        error = caller.fails()
    assert type(error) is wire.CallFailed
    assert (classify(error).code, classify(error).retry) == (code, False)


# Time


def test_a_provider_that_does_not_begin_is_given_up() -> None:
    with calling(stalling(b""), saying("next")) as caller:
        error = caller.fails(timeouts=QUICK)
        assert (error.code, classify(error).retry) == ("provider_first_byte_timeout", True)
        assert caller.call().text == "next"


def test_a_stream_that_stands_still_is_given_up() -> None:
    with calling(stalling(STREAM_HEAD, chunk(HALF)), saying("next")) as caller:
        error = caller.fails(timeouts=QUICK)
        assert (error.code, error.partial.text) == ("provider_stalled", "so far")
        assert caller.call().text == "next"


def dripping(drop: bytes, seconds: float) -> Act:
    def act(exchange: Exchange) -> None:
        exchange.send(STREAM_HEAD + chunk(HALF))
        while not exchange.gone.wait(seconds):
            exchange.send(drop)

    return act


def test_bytes_that_make_no_event_do_not_keep_a_call_alive() -> None:
    with calling(dripping(chunk(b":"), 0.02)) as caller:
        assert caller.fails(timeouts=QUICK).code == "provider_stalled"


@pytest.mark.parametrize("ping", [event("ping"), b": PROCESSING\n\n"], ids=["event", "comment"])
def test_pings_keep_a_call_alive_but_not_for_ever(ping: bytes) -> None:
    """A local server reads a long prompt for minutes, an aggregator waits for its upstream: both say so in comments."""
    bounds = wire.Timeouts(first_byte_s=0.2, between_s=0.2, total_s=0.6)
    began = time.monotonic()
    with calling(dripping(chunk(ping), 0.02)) as caller:
        error = caller.fails(timeouts=bounds)
    assert (error.code, classify(error).fatal) == ("provider_total_timeout", True)
    assert 0.5 < time.monotonic() - began < 2.0 * slack()


def test_no_silence_is_waited_for_longer_than_ninety_seconds() -> None:
    seen: list[sockets.Line] = []

    def look(_: object) -> None:
        seen.append(sockets.current_line())

    with calling(saying("x")) as caller:
        long = wire.Timeouts(first_byte_s=600, between_s=600)
        began = time.monotonic()
        wire.stream(caller.client, b"{}", sink=look, cancel=wire.Cancel(), timeouts=long)
    assert seen[0].between_s == 90.0
    assert seen[0].next_by <= began + 91


def test_a_stream_that_is_whole_but_does_not_end_is_a_reply_all_the_same() -> None:
    whole = begin() + text_block(0, "x") + end()
    with calling(stalling(STREAM_HEAD, chunk(whole)), saying("next")) as caller:
        began = time.monotonic()
        assert caller.call().text == "x"
        assert time.monotonic() - began < 3 * slack()
        assert caller.call().text == "next"


def test_a_provider_that_takes_no_bytes_is_given_up() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        client_of(f"http://127.0.0.1:{listener.getsockname()[1]}") as client,
        pytest.raises(wire.CallFailed) as caught,
    ):
        wire.stream(client, b"x" * (64 << 20), sink=lambda _: None, cancel=wire.Cancel(), timeouts=QUICK)
    assert caught.value.code in ("provider_write_timeout", "provider_first_byte_timeout")


# Size


@pytest.mark.parametrize("more", [delta(0, "text_delta", text="x" * 1000), b": " + b"x" * 1000 + b"\n"])
def test_a_stream_without_end_is_not_read_for_ever(monkeypatch: pytest.MonkeyPatch, more: bytes) -> None:
    monkeypatch.setattr(wire, "BYTES_LIMIT", 1 << 20)
    with calling(flooding(STREAM_HEAD + chunk(HALF), chunk(more)), saying("next")) as caller:
        began = time.monotonic()
        assert caller.fails().code == "reply_too_large"
        assert len(caller.shown) <= 1 << 20
        assert time.monotonic() - began < 10 * slack()
        assert caller.call().text == "next"


def test_a_line_without_end_is_not_held(monkeypatch: pytest.MonkeyPatch) -> None:

    monkeypatch.setattr(events, "LINE_LIMIT", 1 << 18)
    with calling(flooding(STREAM_HEAD + chunk(HALF + b"data: "), chunk(b"x" * 4096))) as caller:
        assert caller.fails().code == "reply_too_large"


def test_a_reply_of_more_text_or_events_than_any_model_says_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:

    monkeypatch.setattr(assembly, "CHARS_LIMIT", 50)
    with calling(streamed(begin(), text_block(0, "x" * 51), end())) as caller:
        error = caller.fails()
        assert (error.code, classify(error).retry) == ("reply_too_large", False)
    monkeypatch.setattr(assembly, "EVENTS_LIMIT", 20)
    with calling(streamed(begin(), *[event("ping")] * 30, end())) as caller:
        assert caller.fails().code == "reply_too_large"


def test_an_error_page_without_end_is_told_by_its_status() -> None:
    head = b"HTTP/1.1 529 Busy\r\ncontent-type: text/html\r\ntransfer-encoding: chunked\r\nretry-after: 3\r\n\r\n"
    with calling(flooding(head, chunk(b"x" * 65536)), saying("next")) as caller:
        began = time.monotonic()
        error = caller.fails()
        assert (error.code, error.http_status, error.retry_after_s) == ("http_529", 529, 3.0)
        assert time.monotonic() - began < 4 * slack()
        assert caller.call().text == "next"


def test_what_comes_compressed_is_not_unpacked() -> None:
    bomb = gzip.compress(b"\0" * (1 << 28))
    hidden = gzip.compress(b'{"error":{"type":"api_error","message":"seen"}}')
    acts = (answering(500, one, b"content-encoding: gzip") for one in (bomb, hidden))
    with calling(*acts, saying("next")) as caller:
        for error in (caller.fails(), caller.fails()):
            assert (error.code, "seen" in error.said) == ("http_500", False)
        assert caller.call().text == "next"


# Reaching it


def test_a_refused_connection_is_told_as_unreachable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with client_of(f"http://127.0.0.1:{port}") as client, pytest.raises(wire.CallFailed) as caught:
        wire.stream(client, b"{}", sink=lambda _: None, cancel=wire.Cancel())
    assert (caught.value.code, classify(caught.value).retry) == ("provider_unreachable", True)


def test_a_name_that_does_not_exist_is_told_as_unreachable() -> None:
    with client_of("http://nowhere.invalid:80") as client, pytest.raises(wire.CallFailed) as caught:
        wire.stream(client, b"{}", sink=lambda _: None, cancel=wire.Cancel(), timeouts=QUICK)
    assert caught.value.code in ("provider_unreachable", "provider_connect_timeout")
    assert "nowhere.invalid" in caught.value.said or caught.value.code == "provider_connect_timeout"


def test_a_reset_connection_is_told_as_lost() -> None:
    def reset(exchange: Exchange) -> None:
        exchange.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        exchange.sock.close()

    with calling(reset, saying("next")) as caller:
        assert caller.fails().code == "provider_connection_lost"
        assert caller.call().text == "next"


def test_a_connection_that_the_provider_closed_while_it_was_idle_is_not_used() -> None:
    taken, closed = threading.Event(), threading.Event()

    def answer_and_close(exchange: Exchange) -> None:
        saying("x")(exchange)
        assert taken.wait(10)
        exchange.sock.shutdown(socket.SHUT_RDWR)
        closed.set()

    with calling(answer_and_close, saying("next")) as caller:
        assert caller.call().text == "x"
        assert caller.client.connections.idle == 1
        taken.set()
        assert closed.wait(10)
        assert caller.call().text == "next"


AUTHORITY = Path(__file__).with_name("localhost.pem")
"""A certificate for `localhost` and its key, good for nothing else."""


def secure() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(AUTHORITY)
    return context


def test_a_secure_call_goes_well_with_its_own_authority_and_not_without() -> None:
    with serving(saying("safe"), tls=secure(), host="localhost") as server:
        with client_of(server.url, ca_file=str(AUTHORITY)) as client:
            caller = Caller(server, client)
            assert [caller.call().text for _ in range(3)] == ["safe"] * 3
        with client_of(server.url) as client:
            error = Caller(server, client).fails()
    assert (error.code, classify(error).fatal) == ("provider_tls_certificate", True)


def test_a_plain_server_where_a_secure_one_was_expected_is_told() -> None:
    with serving(saying("x")) as server, client_of(server.url.replace("http:", "https:")) as client:
        error = Caller(server, client).fails(timeouts=QUICK)
    assert error.code in ("provider_tls", "provider_unreachable", "provider_connect_timeout")


# The key


def test_the_key_stands_in_no_error_log_or_repr(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    told = refusing(401, "authentication_error", f"invalid key: {KEY} and again {KEY}")
    with calling(told, answering(500, f"<p>{KEY}</p>".encode(), kind=b"text/html"), raw(b"")) as caller:
        errors = [caller.fails() for _ in range(3)]
        texts = [repr(caller.client), repr(caller.client.provider)]
    for error in errors:
        texts += [str(error), repr(error), error.said, classify(error).why, *map(repr, vars(error).values())]
        texts.append("".join(traceback.format_exception(error)))
    assert not [record for record in caplog.records if record.levelno < logging.WARNING]
    texts += [record.getMessage() for record in caplog.records]
    texts += [str(record.__dict__) for record in caplog.records]
    assert errors[0].said == "invalid key: [key] and again [key]"
    assert not [text for text in texts if KEY in text]


def test_a_flood_of_words_in_an_error_is_bounded_and_clean() -> None:
    with calling(refusing(400, "invalid_request_error", "a\x00\n" * 9_000)) as caller:
        error = caller.fails()
    assert len(error.said) <= 500
    assert "\n" not in error.said
    assert "\x00" not in error.said


@pytest.mark.parametrize(
    ("url", "key", "kind", "word"),
    [
        ("ftp://x", KEY, "anthropic", "BASE_URL"),
        ("", KEY, "anthropic", "BASE_URL"),
        ("http://", KEY, "anthropic", "BASE_URL"),
        ("http://user:pass@x", KEY, "anthropic", "BASE_URL"),
        ("http://x", "", "anthropic", "PROVIDER_KEY"),
        ("http://x", "sk\n", "anthropic", "PROVIDER_KEY"),
        ("http://api.example.com", KEY, "anthropic", "plain HTTP"),
        ("https://x/v1?key=1", KEY, "responses", "BASE_URL"),
        ("https://api.openai.com/v1", "sk-ant-0123456789", "responses", "a key of anthropic"),
    ],
)
def test_a_provider_that_cannot_be_is_refused_when_the_client_opens(url: str, key: str, kind: str, word: str) -> None:
    with pytest.raises(SettingsError, match=word) as caught:
        wire.open_client(wire.Provider(url, key, kind))
    assert not key or key not in str(caught.value)


def test_what_the_sink_raises_ends_the_call_and_hurts_no_other() -> None:
    class LostLease(Exception):
        pass

    def sink(_: object) -> None:
        raise LostLease

    with calling(stalling(STREAM_HEAD, chunk(HALF)), saying("next")) as caller:
        with pytest.raises(LostLease):
            wire.stream(caller.client, b"{}", sink=sink, cancel=wire.Cancel())
        assert caller.call().text == "next"


def test_noise_of_any_kind_ends_in_an_error_or_a_reply_and_never_hangs() -> None:
    rng = random.Random(7)
    whole = STREAM_HEAD + chunk(begin()) + chunk(text_block(0, "abc")) + chunk(end()) + LAST_CHUNK

    def noisy(seed: int) -> Act:
        data = bytearray(whole)
        mine = random.Random(seed)
        for _ in range(mine.randint(1, 6)):
            at = mine.randrange(len(data))
            match mine.randrange(3):
                case 0:
                    data[at] = mine.randrange(256)
                case 1:
                    del data[at : at + mine.randint(1, 40)]
                case _:
                    data[at:at] = bytes(mine.randrange(256) for _ in range(mine.randint(1, 9)))
        return raw(bytes(data))

    outcomes: set[str] = set()
    with calling(*(noisy(rng.randrange(1 << 30)) for _ in range(300))) as caller:
        for _ in range(300):
            try:
                caller.call(timeouts=QUICK)
                outcomes.add("reply")
            except wire.CallFailed as error:
                outcomes.add(error.code)
    assert {"reply", "provider_bad_stream", "provider_cut"} <= outcomes

"""A call that goes well: what goes out, what is shown while it streams, what the reply holds."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.request import blocks
from shared.text import REPLACEMENT, clean_text
from tests.providers.caller import KEY, Caller, calling, client_of
from tests.providers.raw_server import (
    LAST_CHUNK,
    STREAM_HEAD,
    begin,
    chunk,
    delta,
    end,
    event,
    raw,
    saying,
    serving,
    start,
    stop,
    streamed,
    text_block,
    thinking_block,
    tool_block,
)
from workers.providers import events
from workers.providers.arguments import why_unfit
from workers.providers.assembly import Assembly, BadStream, UnexpectedBlock
from workers.providers.pieces import Pieces
from workers.providers.replies import (
    Began,
    FirstToken,
    Reasoning,
    ReasoningDelta,
    ReasoningStarted,
    ReasoningStopped,
    Text,
    TextDelta,
    ToolCall,
    ToolPreparing,
    Usage,
)

USAGE = Usage(input=12, output=7, cache_read=100, cache_write_5m=10, cache_write_1h=20)


def test_a_reply_has_its_blocks_in_order_and_its_usage_in_disjoint_buckets() -> None:
    with calling(
        streamed(
            begin(),
            event("ping"),
            thinking_block(0, "sig==", "let ", "me"),
            text_block(1, "I ", "look"),
            tool_block(2, "toolu_1", "look", '{"a":', "1e2}"),
            end("tool_use"),
        )
    ) as caller:
        reply = caller.call()
    assert reply.blocks == (
        Reasoning("let me", '{"type":"thinking","thinking":"let me","signature":"sig=="}'),
        Text("I look"),
        ToolCall("toolu_1", "look", '{"a":1e2}'),
    )
    assert reply.usage == USAGE
    assert (reply.stop_reason, reply.request_id, reply.model) == ("tool_use", "req_1", "claude-sonnet-5-5")
    assert reply.limits == (("anthropic-ratelimit-requests-remaining", "41"),)
    assert reply.notes == ()
    shown = [one for one in caller.deltas if not isinstance(one, Began | FirstToken)]
    assert shown == [
        ReasoningStarted(),
        ReasoningDelta("let "),
        ReasoningDelta("me"),
        ReasoningStopped(),
        TextDelta("I "),
        TextDelta("look"),
        ToolPreparing("look"),
    ]
    assert isinstance(caller.deltas[0], Began)
    assert reply.first_token_ms is not None
    assert 0 < reply.first_token_ms <= reply.total_ms


def test_the_body_goes_out_byte_for_byte_under_the_headers_that_we_chose(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "x-foreign: 1\nauthorization: Bearer other\nX-Api-Key: other")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "other")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "other")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    body = '{"model":"m","n":1e2,"z":"\u00e4","a":1.0}'.encode()
    with calling(saying("ok")) as caller:
        caller.call(body)
        head, sent = caller.server.requests[0]
    assert sent == body
    lines = [line.lower() for line in head.decode().split("\r\n")]
    assert lines[0] == "post /v1/messages http/1.1"
    assert f"authorization: bearer {KEY}" in lines
    assert "accept-encoding: identity" in lines
    assert "content-type: application/json" in lines
    assert not [line for line in lines if "other" in line or line.startswith(("x-foreign", "x-api-key", "traceparent"))]


def test_a_base_url_may_end_with_the_version() -> None:
    with serving(saying("ok")) as server:
        for suffix in ("", "/", "/v1", "/v1/", "/proxy/v1"):
            with client_of(server.url + suffix) as client:
                Caller(server, client).call()
    paths = [head.split(b" ")[1] for head, _ in server.requests]
    assert paths == [b"/v1/messages"] * 4 + [b"/proxy/v1/messages"]


def test_the_connection_is_used_again() -> None:
    with calling(saying("ok")) as caller:
        for _ in range(5):
            assert caller.call().text == "ok"
        assert caller.server.connections == 1


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        (("a\x00b",), "a\ufffdb"),
        (("\ud83d", "\ude00"), "\U0001f600"),
        (("x\ud83d", "y"), "x\ufffdy"),
        (("\ud83d", "\ud83d", "\ude00"), "\ufffd\U0001f600"),
        (("\ude00\ud83d",), "\ufffd\ufffd"),
        (("right \u202e left", "\u200f"), "right \u202e left\u200f"),
        (("\n ", "\n", "a", "\n"), "\n \na\n"),
    ],
)
def test_what_was_streamed_is_what_is_stored(pieces: tuple[str, ...], text: str) -> None:
    with calling(streamed(begin(), text_block(0, *pieces), end())) as caller:
        reply = caller.call()
    assert reply.blocks == (Text(text),)
    assert caller.shown == text
    text.encode()


@settings(max_examples=150, deadline=None)
@given(st.lists(st.text(st.characters(codec=None), max_size=6), max_size=8))
def test_any_text_streams_as_it_is_stored(pieces: list[str]) -> None:

    taken = Pieces()
    shown = "".join([*(taken.add(piece) for piece in pieces), taken.close()])
    assert shown == taken.text()
    joined = "".join(pieces).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    assert shown == clean_text(joined)
    assert taken.raw() == joined


def test_a_blank_text_is_neither_shown_nor_stored() -> None:
    with calling(streamed(begin(), text_block(0, "\n", " "), tool_block(1, "t", "look"), end("tool_use"))) as caller:
        reply = caller.call()
    assert reply.blocks == (ToolCall("t", "look", "{}"),)
    assert caller.shown == ""


def test_signed_reasoning_keeps_its_text_its_key_order_and_keys_to_come() -> None:
    signed = streamed(
        begin(),
        start(0, type="thinking", thinking="", signature="", fresh=1.0),
        delta(0, "thinking_delta", thinking="a\x00\ud83d"),
        delta(0, "thinking_delta", thinking="\ude00 \u00e9"),
        delta(0, "signature_delta", signature="s1"),
        stop(0),
        start(1, type="redacted_thinking", data="EmwK"),
        stop(1),
        start(2, type="thinking", thinking="", signature=""),
        delta(2, "signature_delta", signature="empty"),
        stop(2),
        text_block(3, "so"),
        end(),
    )
    with calling(signed) as caller:
        reply = caller.call()
    assert [block.raw_block_text for block in reply.blocks if isinstance(block, Reasoning)] == [
        '{"type":"thinking","thinking":"a\\u0000\U0001f600 \u00e9","signature":"s1","fresh":1.0}',
        '{"type":"redacted_thinking","data":"EmwK"}',
        '{"type":"thinking","thinking":"","signature":"empty"}',
    ]
    assert isinstance(reply.blocks[0], Reasoning)
    assert reply.blocks[0].text_shown == "a\ufffd\U0001f600 \u00e9"


@pytest.mark.parametrize(
    ("arguments", "sent", "word"),
    [
        ((), "{}", None),
        (('{"a":1e2,"b":1.0}',), '{"a":1e2,"b":1.0}', None),
        (('{"a":"\ud83d', '\ude00"}'), '{"a":"\U0001f600"}', None),
        (('{"a":"x',), "{}", "cut off"),
        (('{"a":1,}',), "{}", "not valid JSON"),
        (("[1]",), "{}", "list, not an object"),
        (('{"a":NaN}',), "{}", "not valid JSON"),
        (('{"a":1e999}',), "{}", "not valid JSON"),
        (('{"a":"\\ud83d"}',), "{}", "surrogate"),
        (('{"a":"\ud83d"}',), "{}", "not valid"),
        (('{"a":' + "[" * 300 + "]" * 300 + "}",), "{}", "nested"),
        ((" \n",), "{}", None),
    ],
)
def test_arguments_that_cannot_be_sent_back_are_flagged_and_their_text_kept(
    arguments: tuple[str, ...], sent: str, word: str | None
) -> None:
    with calling(streamed(begin(), tool_block(0, "t", "look", *arguments), end("tool_use"))) as caller:
        (call,) = caller.call().tool_calls
    assert call.sent_arguments == sent
    if word is None:
        assert call.malformed is None
    else:
        assert word in (call.malformed or "")
        kept = clean_text("".join(arguments))
        assert call.arguments_text in (kept, kept + REPLACEMENT)
        assert why_unfit(call.name, call.arguments_text) == call.malformed
    blocks.tool_use(call.id, call.name, call.sent_arguments)


def test_ids_that_are_double_missing_or_unfit_become_unique_and_stay_the_same_for_the_same_reply() -> None:
    answer = streamed(
        begin(),
        tool_block(0, "call_0", "look"),
        tool_block(1, "call_0", "look"),
        tool_block(2, "", "look"),
        tool_block(3, None, "look"),
        tool_block(4, "a b", "look"),
        end("tool_use"),
    )
    with calling(answer) as caller:
        first = [call.id for call in caller.call().tool_calls]
        assert [call.id for call in caller.call().tool_calls] == first
    assert len(set(first)) == len(first)
    assert first[0] == "call_0"
    assert all(call.startswith("toolu_") for call in first[1:])


@pytest.mark.parametrize(
    ("name", "fit"), [("", "unnamed_tool"), (None, "unnamed_tool"), ("rm -rf /", "unfit_rm_-rf__")]
)
def test_a_tool_without_a_usable_name_is_flagged(name: str | None, fit: str) -> None:
    with calling(streamed(begin(), tool_block(0, "t", name), end("tool_use"))) as caller:
        (call,) = caller.call().tool_calls
    assert call.name == fit
    assert "name of the tool" in (call.malformed or "")


def test_input_that_comes_whole_with_the_start_of_its_block_is_taken() -> None:
    whole = start(0, type="tool_use", id="t", name="look", input={"b": 1, "a": [1.5]}) + stop(0)
    with calling(streamed(begin(), whole, end("tool_use"))) as caller:
        assert caller.call().tool_calls == (ToolCall("t", "look", '{"b":1,"a":[1.5]}'),)


@pytest.mark.parametrize(
    ("first", "last", "usage", "notes"),
    [
        ({}, {}, None, ("usage_missing",)),
        (None, {}, None, ("usage_missing",)),
        ({"input_tokens": 5}, {"output_tokens": 6}, Usage(5, 6), ()),
        (
            {"input_tokens": 5, "cache_creation_input_tokens": 9},
            {"output_tokens": 6},
            Usage(5, 6, cache_write_5m=9),
            (),
        ),
        ({"input_tokens": -5}, {"output_tokens": 6}, None, ("usage_absurd",)),
        ({"input_tokens": 5.0}, {"output_tokens": 6}, None, ("usage_absurd",)),
        ({"input_tokens": True}, {"output_tokens": 6}, None, ("usage_absurd",)),
        ({"input_tokens": 10**12}, {"output_tokens": 6}, None, ("usage_absurd",)),
        ({"input_tokens": 5}, {"input_tokens": 7, "output_tokens": 6}, Usage(7, 6), ()),
        ({"input_tokens": 5}, {"input_tokens": None, "output_tokens": 6}, Usage(5, 6), ()),
        (
            {"input_tokens": 5, "cache_creation_input_tokens": 9, "cache_creation": {"ephemeral_1h_input_tokens": 4}},
            {"output_tokens": 6},
            None,
            ("usage_absurd",),
        ),
        (
            {"input_tokens": 5},
            {"output_tokens": 6, "output_tokens_details": {"thinking_tokens": 4}},
            Usage(5, 6, reasoning=4),
            (),
        ),
        ({"input_tokens": 0}, {"output_tokens": 6}, None, ("usage_zero",)),
        ({"input_tokens": 5}, {"output_tokens": 0}, None, ("usage_zero",)),
        ({"input_tokens": 0, "cache_read_input_tokens": 9}, {"output_tokens": 6}, Usage(0, 6, cache_read=9), ()),
    ],
)
def test_usage_is_told_whole_or_not_at_all(
    first: dict[str, object] | None, last: dict[str, object], usage: Usage | None, notes: tuple[str, ...]
) -> None:
    with calling(streamed(begin(first), text_block(0, "x"), end(usage=last))) as caller:
        reply = caller.call()
    assert (reply.usage, reply.notes) == (usage, notes)


def test_an_answer_of_nothing_may_have_written_nothing() -> None:
    with calling(streamed(begin({"input_tokens": 5}), end(usage={"output_tokens": 0}))) as caller:
        assert (caller.call().usage, caller.call().notes) == (Usage(5, 0), ())


def test_an_answer_longer_than_its_tokens_can_be_has_no_usage() -> None:
    long = text_block(0, "x" * 70_000)
    acts = [streamed(begin({"input_tokens": 5}), long, end(usage={"output_tokens": n})) for n in (10, 100)]
    with calling(*acts) as caller:
        first, second = caller.call(), caller.call()
    assert (first.usage, first.notes) == (None, ("usage_too_small",))
    assert (second.usage, second.notes) == (Usage(5, 100), ())


def test_writes_without_their_time_to_live_are_booked_at_the_dearer_one_that_was_asked_for() -> None:
    told = {"input_tokens": 5, "cache_creation_input_tokens": 9}
    with calling(streamed(begin(told), text_block(0, "x"), end())) as caller:
        marked = b'{"messages":[{"cache_control":{"type":"ephemeral","ttl":"1h"}}]}'
        assert caller.call(marked).usage == Usage(5, 7, cache_write_1h=9)
        spoken = json.dumps({"text": '"ttl":"1h"'}, separators=(",", ":")).encode()
        assert caller.call(spoken).usage == Usage(5, 7, cache_write_5m=9)


def test_the_kinds_of_stop_are_passed_on() -> None:
    refused = event(
        "message_delta",
        delta={"stop_reason": "refusal", "stop_details": {"category": "cyber"}},
        usage={"output_tokens": 1},
    )
    with calling(streamed(begin(), refused, event("message_stop")), streamed(begin(), end("max_tokens"))) as caller:
        reply = caller.call()
        assert (reply.stop_reason, reply.refusal, reply.blocks) == ("refusal", "cyber", ())
        assert caller.call().stop_reason == "max_tokens"


def test_what_is_unknown_in_a_stream_is_passed_over() -> None:
    with calling(
        streamed(
            b": a comment\n\nretry: 3\nid: 7\n\n",
            begin(),
            event("later_kind", x=1),
            start(0, type="text", text="a", citations=None),
            delta(0, "citations_delta", citation={"x": 1}),
            delta(0, "text_delta", text="b"),
            end(),
        )
    ) as caller:
        reply = caller.call()
    assert reply.blocks == (Text("ab"),)
    assert reply.notes == ("block_not_closed",)


STREAM = begin() + text_block(0, "h\u00e9llo \U0001f600", "\ud83d", "\ude00") + tool_block(1, "t", "look", "{}") + end()


@settings(max_examples=150, deadline=None)
@given(st.lists(st.integers(0, len(STREAM)), max_size=12), st.sampled_from([b"\n", b"\r\n", b"\r"]))
def test_a_stream_reads_the_same_however_it_is_cut(cuts: list[int], line_end: bytes) -> None:
    stream = STREAM.replace(b"\n", line_end)
    at = [0, *sorted(cut * len(stream) // len(STREAM) for cut in cuts), len(stream)]
    pieces = [stream[a:b] for a, b in pairwise(at) if a != b]
    assert list(events.read(pieces)) == list(events.read([STREAM]))


def test_a_stream_that_comes_byte_by_byte_over_the_socket_is_read() -> None:
    with calling(raw(STREAM_HEAD, *(chunk(STREAM[at : at + 1]) for at in range(len(STREAM))), LAST_CHUNK)) as caller:
        assert caller.call().text == "h\u00e9llo \U0001f600\U0001f600"


def test_data_in_several_lines_is_one_event() -> None:
    parted = b'data: {"type":\ndata: "ping"}\n\n'
    assert list(events.read([parted])) == [{"type": "ping"}]


ANYTHING = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=5)
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=6,
)


def odd(known: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.one_of(known, known, known, ANYTHING)


BLOCK = st.fixed_dictionaries(
    {"type": odd(st.sampled_from(["text", "tool_use", "thinking", "redacted_thinking", "other"]))},
    optional=dict.fromkeys(("id", "name", "input", "text", "thinking", "signature", "data"), ANYTHING),
)
DELTA = st.fixed_dictionaries(
    {"type": odd(st.sampled_from(["text_delta", "input_json_delta", "thinking_delta", "signature_delta"]))},
    optional={name: odd(st.text(max_size=3)) for name in ("text", "partial_json", "thinking", "signature")}
    | dict.fromkeys(("stop_reason", "stop_details"), ANYTHING),
)
EVENT = st.fixed_dictionaries(
    {
        "type": st.sampled_from(
            [
                "content_block_start",
                "content_block_delta",
                "content_block_stop",
                "message_delta",
                "message_stop",
                "ping",
            ]
        )
    },
    optional={
        "index": odd(st.integers(-1, 3)),
        "content_block": odd(BLOCK),
        "delta": odd(DELTA),
        "usage": odd(st.dictionaries(st.sampled_from(["output_tokens", "input_tokens", "cache_creation"]), ANYTHING)),
    },
)
MESSAGE = st.fixed_dictionaries({}, optional=dict.fromkeys(("id", "model", "usage"), ANYTHING))


@settings(max_examples=250, deadline=None)
@given(MESSAGE, st.lists(EVENT, max_size=10))
def test_whatever_a_stream_says_it_is_read_or_refused(message: dict[str, object], said: list[dict[str, Any]]) -> None:
    made = Assembly(lambda _: None, since_ms=lambda: 1.0, hour_marks=lambda: False)
    try:
        for one in ({"type": "message_start", "message": message}, *said, {"type": "message_stop"}):
            made.feed(one)
    except (BadStream, UnexpectedBlock):
        made.partial()
        return
    made.usage()
    for block in made.content():
        if isinstance(block, ToolCall):
            blocks.tool_use(block.id, block.name, block.sent_arguments)
        if isinstance(block, Reasoning):
            blocks.parse(block.raw_block_text)

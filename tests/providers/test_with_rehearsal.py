"""The wire against the rehearsal provider, which validates and bills as the real one does and shares no code."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from shared.request import assembled, blocks
from shared.request.assembled import Message, Piece
from shared.request.cache_plan import PlanState, place
from shared.request.marked import Ttl
from shared.request.repair import mend
from tests.providers.caller import client_of
from tests.rehearsal.served import Served, serve
from tests.request.test_repair import CASES
from workers.providers import prices, sizes, wire
from workers.providers.failures import classify
from workers.providers.params import Params, text
from workers.providers.replies import Reasoning, Reply, Text, TextDelta, ToolCall, Usage

MODEL = "claude-sonnet-5-5"
QUICK = wire.Timeouts(first_byte_s=1.0, between_s=0.3, total_s=5.0)
TOOLS = '[{"name":"look","description":"looks","input_schema":{"type":"object","properties":{}}}]'


@pytest.fixture(scope="module")
def running() -> Iterator[Served]:
    with serve() as served:
        yield served


@pytest.fixture
def provider(running: Served) -> Served:
    running.control("reset")
    return running


@pytest.fixture
def client(provider: Served) -> Iterator[wire.Client]:
    with client_of(provider.url) as one:
        yield one


def request_of(pieces: list[Piece]) -> assembled.Request:
    system = blocks.join([blocks.text("You are brief. " * 600)])
    floor = assembled.begin(TOOLS, system, stable_proved=False, with_reasoning=True, newest=0)
    return assembled.append(floor, pieces, pieces[-1].id if pieces else 0)


def body_of(request: assembled.Request, session: str, model: str = MODEL, pinned: int | None = None) -> bytes:
    state = PlanState(ttl=Ttl.HOUR, last_breakpoint_message_id=pinned)
    return place(request, state).body(text(Params(model, session)))


def call(client: wire.Client, body: bytes, timeouts: wire.Timeouts = QUICK) -> Reply:
    return wire.stream(client, body, sink=lambda _: None, cancel=wire.Cancel(), timeouts=timeouts)


def said_again(reply: Reply) -> tuple[str, ...]:
    """The reply's blocks as the next request carries them."""
    out: list[str] = []
    for block in reply.blocks:
        match block:
            case Text():
                out.append(blocks.text(block.text))
            case ToolCall():
                out.append(blocks.tool_use(block.id, block.name, block.sent_arguments))
            case Reasoning():
                out.append(block.raw_block_text)
    return tuple(out)


def test_what_a_reply_says_goes_back_as_it_was_signed_and_the_prefix_is_read(
    provider: Served, client: wire.Client
) -> None:
    provider.script(
        session="s1",
        replies=[
            {
                "thinking": "how odd \u00e9 \U0001f600",
                "redacted": True,
                "text": "I look",
                "tools": [{"name": "look", "input_text": '{"n":1e2,"z":1.0,"\u00e9":"\\u00e9"}'}, {"name": "look"}],
            },
            {"text": "It is so"},
        ],
    )
    first = request_of([Piece(1, "user", (blocks.text("what is there?"),))])
    reply = call(client, body_of(first, "s1"))
    assert [call.sent_arguments for call in reply.tool_calls] == ['{"n":1e2,"z":1.0,"\u00e9":"\\u00e9"}', "{}"]
    assert any(isinstance(block, Reasoning) and block.text_shown for block in reply.blocks)
    results = tuple(blocks.tool_result(one.id, "seen") for one in reply.tool_calls)
    longer = assembled.append(first, [Piece(2, "assistant", said_again(reply)), Piece(3, "user", results)], 3)
    mended, _, repairs = mend(longer)
    assert mended is longer
    assert repairs == ()
    second = call(client, body_of(longer, "s1", pinned=1))
    assert "It is so" in second.text
    rows = provider.ledger("s1")
    assert rows[1]["extended"] is True
    assert second.usage is not None
    assert second.usage.cache_read > 1_000


@pytest.mark.parametrize("model", ["claude-sonnet-5-5", "claude-opus-5-5", "claude-haiku-5-5", "claude-fable-5-2"])
def test_our_usage_and_our_dollars_are_those_of_the_provider(provider: Served, client: wire.Client, model: str) -> None:
    request = request_of([Piece(1, "user", (blocks.text("hello"),))])
    replies = [call(client, body_of(request, f"bill-{model}", model)) for _ in range(2)]
    rows = provider.ledger(f"bill-{model}")
    for reply, row in zip(replies, rows, strict=True):
        assert reply.usage == Usage(
            input=row["input"],
            output=row["output"],
            cache_read=row["cache_read"],
            cache_write_5m=row["cache_write_5m"],
            cache_write_1h=row["cache_write_1h"],
            reasoning=reply.usage.reasoning if reply.usage else 0,
        )
        cost = prices.price(model, reply.usage, datetime.now(UTC)).usd
        assert cost is not None
        assert abs(cost - Decimal(str(row["usd"]))) < Decimal("0.000001")
    assert rows[0]["cache_write_1h"] > 0
    assert rows[1]["cache_read"] > 0


UNSIGNED = [case for case in CASES if "thinking" not in str(case[1]) and case[0] != "what cannot be read is left out"]


@pytest.mark.parametrize("messages", [case[1] for case in UNSIGNED], ids=[case[0] for case in UNSIGNED])
def test_a_damaged_transcript_is_taken_once_it_is_repaired(
    provider: Served, client: wire.Client, messages: tuple[Message, ...]
) -> None:
    pieces = [Piece(m.last_id, m.role, m.blocks) for m in messages if m.role in ("user", "assistant")]
    request = request_of(pieces)
    mended, _, _ = mend(request)
    provider.script(session="torn", replies=[{"text": "fine"}], repeat=True)
    assert "fine" in call(client, body_of(mended, "torn")).text


def test_a_damaged_transcript_is_refused_as_it_is(client: wire.Client) -> None:
    said = [("user", blocks.text("x")), ("assistant", blocks.tool_use("a", "look", "{}")), ("user", blocks.text("y"))]
    torn = request_of([Piece(nth, role, (block,)) for nth, (role, block) in enumerate(said, 1)])
    with pytest.raises(wire.CallFailed) as caught:
        call(client, body_of(torn, "torn"))
    assert "tool_use" in caught.value.said
    assert (caught.value.code, caught.value.http_status) == ("invalid_request_error", 400)
    assert classify(caught.value).fatal


FAULTS: list[tuple[dict[str, Any], str, dict[str, Any]]] = [
    ({"kind": "status", "status": 429, "retry_after": 3}, "rate_limit_error", {"retry": True, "wait_s": 3.0}),
    ({"kind": "status", "status": 429}, "rate_limit_error", {"retry": True, "wait_s": None}),
    ({"kind": "status", "status": 529}, "overloaded_error", {"retry": True, "cools": True}),
    ({"kind": "status", "status": 500}, "api_error", {"retry": True}),
    ({"kind": "status", "status": 401}, "authentication_error", {"fatal": True}),
    ({"kind": "overflow"}, "invalid_request_error", {"compress": True, "code": "context_overflow"}),
    ({"kind": "html", "status": 200}, "provider_not_a_stream", {"fatal": True}),
    ({"kind": "html", "status": 502}, "http_502", {"retry": True}),
    ({"kind": "redirect"}, "http_302", {"fatal": True}),
    ({"kind": "nothing"}, "provider_connection_lost", {"retry": True}),
    ({"kind": "stall"}, "provider_stalled", {"retry": True}),
    ({"kind": "cut"}, "provider_cut", {"retry": True}),
    ({"kind": "clean_eof"}, "provider_cut", {"retry": True}),
    ({"kind": "error_event"}, "overloaded_error", {"retry": True, "cools": True}),
    ({"kind": "garbage"}, "provider_bad_stream", {"retry": True}),
    ({"kind": "flood", "bytes": 20_000_000}, "reply_too_large", {"fatal": True}),
]


@pytest.mark.parametrize(("fault", "code", "done"), FAULTS, ids=[str(fault) for fault, _, _ in FAULTS])
def test_each_fault_of_the_rehearsal_is_told_and_the_next_call_goes_well(
    provider: Served, client: wire.Client, fault: dict[str, Any], code: str, done: dict[str, Any]
) -> None:
    spoken = {"text": "one two three four", "chunks": 4}
    provider.script(session="f", replies=[{**spoken, "fault": fault}, spoken])
    body = body_of(request_of([Piece(1, "user", (blocks.text("hello"),))]), "f")
    with pytest.raises(wire.CallFailed) as caught:
        call(client, body)
    recovery = classify(caught.value)
    assert caught.value.code == code
    assert {name: getattr(recovery, name) for name in done} == done
    assert "three" in call(client, body).text


FLOODED: dict[str, dict[str, Any]] = {
    "text": {"text": "one two three four", "chunks": 4},
    "arguments": {"tools": [{"name": "look", "input": {"at": "a"}}]},
    "pings": {"text": "one two three four", "chunks": 4},
}


@pytest.mark.parametrize("of", FLOODED)
def test_what_is_far_more_than_was_asked_for_is_not_read_on(provider: Served, client: wire.Client, of: str) -> None:
    bytes_ = 3_000_000  # less than any bound that does not know the request
    provider.script(session="m", replies=[{**FLOODED[of], "fault": {"kind": "flood", "of": of, "bytes": bytes_}}] * 2)
    request = request_of([Piece(1, "user", (blocks.text("hello"),))])
    with pytest.raises(wire.CallFailed) as caught:
        call(client, place(request, PlanState(ttl=Ttl.HOUR)).body(text(Params(MODEL, "m", max_tokens=100))))
    assert (caught.value.code, classify(caught.value).retry) == ("reply_too_large", False)
    assert len(caught.value.partial.text) <= sizes.most_chars(100)
    roomy = place(request, PlanState(ttl=Ttl.HOUR)).body(text(Params(MODEL, "m", max_tokens=64_000)))
    assert call(client, roomy).stop_reason is not None


def test_a_reply_without_usage_is_a_reply_whose_cost_is_unknown(provider: Served, client: wire.Client) -> None:
    provider.script(session="n", replies=[{"text": "quiet", "fault": {"kind": "no_usage"}}])
    reply = call(client, body_of(request_of([Piece(1, "user", (blocks.text("hello"),))]), "n"))
    assert "quiet" in reply.text
    assert (reply.usage, reply.notes) == (None, ("usage_missing",))
    assert prices.price(MODEL, reply.usage, datetime.now(UTC)).usd is None


def test_a_cancel_is_seen_by_the_provider_as_a_hang_up(provider: Served, client: wire.Client) -> None:
    provider.script(session="c", replies=[{"text": "one two three", "chunks": 3, "fault": {"kind": "stall"}}])
    body = body_of(request_of([Piece(1, "user", (blocks.text("hello"),))]), "c")
    cancel = wire.Cancel()
    begun = threading.Event()

    def sink(one: object) -> None:
        if isinstance(one, TextDelta):
            begun.set()

    def cancel_once_it_speaks() -> None:
        assert begun.wait(10)
        cancel.cancel("a person stopped it")

    thread = threading.Thread(target=cancel_once_it_speaks)
    thread.start()
    with pytest.raises(wire.CallCut) as caught:
        wire.stream(client, body, sink=sink, cancel=cancel)
    thread.join(10)
    assert caught.value.partial.began
    assert caught.value.partial.usage is not None

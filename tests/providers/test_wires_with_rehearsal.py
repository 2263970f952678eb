"""The other wires against the rehearsal provider, which reads them by their own rules and shares no code."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from shared.providers.declaration import Declaration
from shared.providers.resolve import checked_url
from shared.providers.table import TABLE
from shared.request import assembled, blocks
from shared.request.assembled import Piece
from shared.request.cache_plan import PlanState, place
from shared.request.dialect import Wire
from shared.request.marked import marked_from
from tests.providers.caller import client_of
from tests.rehearsal.served import Served, serve
from workers.conversing import content_of
from workers.providers import prices, wire
from workers.providers.failures import classify
from workers.providers.params import Params, text
from workers.providers.replies import Delta, Reply, TextDelta

TOOLS = '[{"name":"look","description":"looks","input_schema":{"type":"object","properties":{}}}]'
SYSTEM = "You are brief. " * 600
ASKED = "What is there?"

ROUTES = [
    ("openai", "gpt-6.1-sol"),
    ("openai", "gpt-5.5"),
    ("azure", "gpt-6.1-sol"),
    ("openrouter", "claude-sonnet-5-5"),
    ("gemini", "gemini-3.8-flash"),
    ("deepseek", "deepseek-v4-pro"),
    ("mistral", "mistral-large-4"),
    ("ollama", "smollm2"),
    ("llama.cpp", "smollm2"),
    ("custom", "smollm2"),
    ("bedrock", "global.anthropic.claude-sonnet-5-5"),
    ("bedrock", "us.anthropic.claude-opus-4-5-20251101-v1:0"),
]
IDS = [f"{provider}-{model}" for provider, model in ROUTES]


@pytest.fixture(scope="module")
def running() -> Iterator[Served]:
    with serve() as served:
        yield served


@pytest.fixture
def provider(running: Served) -> Served:
    running.control("reset")
    return running


def at(provider: Served, name: str) -> Declaration:
    known = TABLE[name]
    return replace(known, base_url=checked_url(provider.url, known.wire))


class Talk:
    """One conversation as a worker has it: pieces of rows, and a body for each call."""

    def __init__(self, to: Declaration, model: str, *, stream: bool = True, system: str = SYSTEM) -> None:
        self.to, self.model, self.stream = to.of_model(model), model, stream
        floor = assembled.begin(
            TOOLS, blocks.join([blocks.text(system)]), stable_proved=True, with_reasoning=True, newest=0
        )
        self.request = floor
        self.pinned: int | None = None
        self.bodies: list[bytes] = []

    def add(self, role: str, *texts: str) -> None:
        at = self.request.newest + 1
        self.request = assembled.append(self.request, [Piece(at, role, texts)], at)

    def body(self, **more: Any) -> bytes:
        state = PlanState(route=self.to.route, dialect=self.to.dialect, last_breakpoint_message_id=self.pinned)
        marked = place(self.request, state)
        self.pinned = marked.end_message_id
        head = text(Params(self.model, "0198-s", stream=self.stream, shared="d" * 64, max_tokens=500, **more), self.to)
        body = marked.body(head)
        assert marked_from(self.request, marked.marks_text).body(head) == body
        self.bodies.append(body)
        return body

    def call(self, client: wire.Client) -> tuple[Reply, list[Delta]]:
        deltas: list[Delta] = []
        target = wire.Target(self.model, streamed=self.stream)
        reply = wire.stream(client, self.body(), sink=deltas.append, cancel=wire.Cancel(), target=target)
        content, sealed = content_of(reply)
        assert content is not None
        kept = blocks.split(content)
        self.add("assistant", *(blocks.splice(kept, blocks.split_reasoning(sealed)) if sealed else kept))
        return reply, deltas


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize(("name", "model"), ROUTES, ids=IDS)
def test_a_conversation_with_tools_and_thoughts_goes_on_as_each_provider_wants_it(
    provider: Served, name: str, model: str, streamed: bool
) -> None:
    to = at(provider, name).of_model(model)
    arguments = '{"n":1e2,"odd":"ü \\ud83d\\ude00","list":[1.0,{"b":1,"a":2}]}'
    provider.script(
        session=None if "0198-s" not in text(Params(model, "0198-s"), to) else "0198-s",
        replies=[
            {
                "text": "I look. ", "thinking": "Where?" if name != "custom" else None,
                "tools": [{"name": "look", "input": {}, "input_text": arguments}, {"name": "look", "input": {"a": 1}}],
            },
            {"text": "Two things: é and 漢."},
            {"text": "Done."},
        ],
    )  # fmt: skip
    talk = Talk(to, model, stream=streamed)
    with client_of(provider.url, declared=to) as client:
        talk.add("user", blocks.text(ASKED))
        first, deltas = talk.call(client)
        given = [call.arguments_text for call in first.tool_calls]
        if to.wire is Wire.CONVERSE and not streamed:  # an object, not its text: how a number was written is lost
            assert [json.loads(one) for one in given] == [json.loads(arguments), {"a": 1}]
        else:
            assert given == [arguments, '{"a":1}']
        assert first.text == "".join(delta.text for delta in deltas if isinstance(delta, TextDelta)) == "I look. "
        assert first.stop_reason == "tool_use"
        talk.add("user", *(blocks.tool_result(call.id, "a cup") for call in first.tool_calls))
        talk.add("user", blocks.text("and quickly"))
        second, _ = talk.call(client)
        assert second.text == "Two things: é and 漢."
        talk.add("user", blocks.text("thanks"))
        third, _ = talk.call(client)
        assert (third.text, third.stop_reason) == ("Done.", "end_turn")
    calls = provider.ledger()
    assert [(call["status"], call["error"]) for call in calls] == [(200, None)] * 3
    for reply, call in zip((first, second, third), calls, strict=True):
        assert reply.usage is not None
        buckets = (reply.usage.input, reply.usage.cache_read, reply.usage.cache_write_5m, reply.usage.output)
        assert reply.usage.cache_write_1h == call["cache_write_1h"]
        assert buckets == (call["input"], call["cache_read"], call["cache_write_5m"], call["output"])
        assert reply.request_id == call["request_id"]
    before, after = (json.loads(body) for body in talk.bodies[1:])
    key = "input" if to.wire is Wire.RESPONSES else "messages"
    assert to.route.marks or after[key][: len(before[key])] == before[key]
    assert to.route.marks or third.usage is None or third.usage.cache_read >= (1_024 if model != "smollm2" else 0)


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("openai", "gpt-6.1-sol"),
        ("openai", "gpt-5.5"),
        ("bedrock", "global.anthropic.claude-sonnet-5-5"),
        ("bedrock", "eu.anthropic.claude-sonnet-4-5-20250929-v1:0"),
    ],
)
def test_the_bill_is_the_provider_s_to_the_cent(provider: Served, name: str, model: str) -> None:
    to = at(provider, name)
    talk = Talk(to, model)
    with client_of(provider.url, declared=to) as client:
        for word in ("one", "two", "three"):
            talk.add("user", blocks.text(word))
            reply, _ = talk.call(client)
            cost = prices.price(model, reply.usage, datetime.now(UTC), provider=name).usd
            assert cost == Decimal(str(provider.ledger()[-1]["usd"]))
    assert reply.usage is not None
    assert reply.usage.cache_read > 1_024


@pytest.mark.parametrize(("name", "model"), ROUTES, ids=IDS)
def test_what_overflows_is_known_by_its_words(provider: Served, name: str, model: str) -> None:
    to = at(provider, name)
    provider.control("window", model=model, context=2_000)
    talk = Talk(to, model)
    talk.add("user", blocks.text("word " * 3_000))
    with client_of(provider.url, declared=to) as client, pytest.raises(wire.CallFailed) as caught:
        talk.call(client)
    assert classify(caught.value).compress
    assert caught.value.http_status == 400


def test_a_cut_stream_is_a_cut_with_what_was_said(provider: Served) -> None:
    for name, model in (
        ("openai", "gpt-6.1-sol"),
        ("azure", "gpt-6.1-sol"),
        ("bedrock", "anthropic.claude-sonnet-5-5"),
    ):
        to = at(provider, name)
        provider.control("reset")
        provider.script(replies=[{"text": "a" * 900, "fault": {"kind": "clean_eof", "after_chunks": 2}}])
        talk = Talk(to, model)
        talk.add("user", blocks.text("go"))
        with client_of(provider.url, declared=to) as client, pytest.raises(wire.ProviderCut) as caught:
            talk.call(client)
        assert caught.value.code == "provider_cut"
        assert 0 < len(caught.value.partial.text) < 900
        assert caught.value.partial.usage is None


def test_usage_that_is_not_told_is_unknown_and_not_nothing(provider: Served) -> None:
    for name, model in (
        ("openai", "gpt-6.1-sol"),
        ("azure", "gpt-6.1-sol"),
        ("bedrock", "anthropic.claude-sonnet-5-5"),
    ):
        provider.control("reset")
        provider.script(replies=[{"text": "hello", "fault": {"kind": "no_usage"}}])
        to = at(provider, name)
        talk = Talk(to, model)
        talk.add("user", blocks.text("go"))
        with client_of(provider.url, declared=to) as client:
            reply, _ = talk.call(client)
        assert (reply.usage, "usage_missing" in reply.notes) == (None, True)


@pytest.mark.parametrize(
    ("of", "code"), [("text", "reply_too_large"), ("arguments", "provider_bad_stream"), ("pings", None)]
)
def test_a_flood_of_frames_is_bounded_and_one_of_kinds_that_nobody_knows_is_none(
    provider: Served, of: str, code: str | None
) -> None:
    to, model = at(provider, "bedrock"), "anthropic.claude-sonnet-5-5"
    provider.script(replies=[{"text": "a" * 900, "fault": {"kind": "flood", "of": of, "bytes": 400_000}}])
    talk = Talk(to, model)
    talk.add("user", blocks.text("go"))
    with client_of(provider.url, declared=to) as client:
        if code is None:
            assert talk.call(client)[0].text == "a" * 900
        else:
            with pytest.raises(wire.CallFailed) as caught:
                talk.call(client)
            assert caught.value.code == code

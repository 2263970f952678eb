"""Proves the wire with the real SDK: streamed and plain replies, tools, counting, models, pre-warm, scripted order."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.rehearsal.served import Json, Served

MODEL = "claude-sonnet-5-5"
LONG = "words that fill the prompt so that it may be cached " * 100


def ask(text: str, **more: Any) -> Any:
    return {"model": MODEL, "max_tokens": 2_000, "messages": [{"role": "user", "content": text}], **more}


def test_a_stream_comes_in_the_documented_order_and_equals_the_plain_reply(provider: Served) -> None:
    provider.script(
        name="order",
        repeat=True,
        replies=[
            {"text": "one two three four", "chunks": 4, "tools": [{"name": "look", "input": {"a": [1, 2.5, "é"]}}]}
        ],
    )
    with provider.sdk.messages.stream(**ask("script:order")) as stream:
        names = [event.type for event in stream if event.type not in ("text", "input_json")]
        streamed = stream.get_final_message()
    assert names == [
        "message_start",
        "content_block_start", *["content_block_delta"] * 4, "content_block_stop",
        "content_block_start", *["content_block_delta"] * 3, "content_block_stop",
        "message_delta",
        "message_stop",
    ]  # fmt: skip
    plain = provider.create(ask("script:order"))
    assert streamed.stop_reason == plain.stop_reason == "tool_use"
    assert streamed.content[0].model_dump(include={"text"}) == {"text": "one two three four"}
    assert plain.content[1].model_dump(include={"name", "input"}) == {"name": "look", "input": {"a": [1, 2.5, "é"]}}
    assert streamed.content[1].model_dump(include={"name", "input"}) == {"name": "look", "input": {"a": [1, 2.5, "é"]}}
    assert streamed.usage.output_tokens == plain.usage.output_tokens
    assert streamed.usage.input_tokens == plain.usage.input_tokens


def test_pieces_come_with_their_gaps_and_the_first_byte_after_its_delay(provider: Served) -> None:
    provider.script(name="slow", replies=[{"text": "abcdef", "chunks": 3, "delay_s": 0.3, "gap_s": 0.1}])
    provider.raw(ask("script:slow", stream=True))
    (call,) = provider.ledger()
    assert 0.29 < call["first_byte"] - call["started"] < 0.6
    assert 0.58 < call["duration_s"] < 1.2


def test_arguments_can_be_given_as_exact_text(provider: Served) -> None:
    text = '{"b":1e2,"a":1.50}'
    wish = {"name": "look", "input_text": text}
    provider.script(name="exact", repeat=True, replies=[{"tools": [wish]}])
    assert f'"input":{text}' in provider.raw(ask("script:exact")).text
    with provider.sdk.messages.stream(**ask("script:exact")) as stream:
        pieces = [
            event.delta.partial_json
            for event in stream
            if event.type == "content_block_delta" and event.delta.type == "input_json_delta"
        ]
    assert "".join(pieces) == text


def test_output_is_cut_at_max_tokens(provider: Served) -> None:
    provider.script(
        name="long", repeat=True, replies=[{"text": "many words " * 200, "tools": [{"name": "look", "input": {}}]}]
    )
    reply = provider.create(ask("script:long", max_tokens=20))
    assert (reply.stop_reason, reply.usage.output_tokens, len(reply.content)) == ("max_tokens", 20, 1)


def test_a_pre_warm_writes_the_cache_says_nothing_and_costs_no_output(provider: Served) -> None:
    system = [{"type": "text", "text": LONG, "cache_control": {"type": "ephemeral", "ttl": "1h"}}]
    warm = provider.create(ask("x", system=system, max_tokens=0))
    assert (warm.content, warm.stop_reason, warm.usage.output_tokens) == ([], "max_tokens", 0)
    assert warm.usage.cache_creation is not None
    written = warm.usage.cache_creation.ephemeral_1h_input_tokens
    assert written == warm.usage.cache_creation_input_tokens
    assert written > 512
    assert provider.create(ask("y", system=system)).usage.cache_read_input_tokens == written


def test_the_automatic_mark_falls_on_the_last_block(provider: Served) -> None:
    first = provider.create(ask(LONG, cache_control={"type": "ephemeral"}))
    assert first.usage.cache_creation_input_tokens == provider.ledger()[0]["cache_write_5m"] > 512
    assert provider.ledger()[0]["marks"] == [{"position": 1, "ttl": "5m"}]
    again = provider.create(ask(LONG, cache_control={"type": "ephemeral"}))
    assert again.usage.cache_read_input_tokens == first.usage.cache_creation_input_tokens


def test_the_clock_can_be_moved_past_an_entry_s_life(provider: Served) -> None:
    marked = ask(LONG, cache_control={"type": "ephemeral"})
    written = provider.create(marked).usage.cache_creation_input_tokens
    provider.control("clock", offset_s=299)
    assert provider.create(marked).usage.cache_read_input_tokens == written
    provider.control("clock", offset_s=299 + 301)
    assert provider.create(marked).usage.cache_read_input_tokens == 0


def test_parallel_cold_calls_each_write_and_one_after_the_first_byte_reads(provider: Served) -> None:
    provider.script(name="cold", repeat=True, replies=[{"text": "warm", "delay_s": 0.3}])
    marked = ask(f"script:cold {LONG}", cache_control={"type": "ephemeral"})
    with ThreadPoolExecutor(4) as pool:
        replies = list(pool.map(provider.create, [marked] * 4))
    assert [reply.usage.cache_read_input_tokens for reply in replies] == [0] * 4
    assert (provider.create(marked).usage.cache_read_input_tokens or 0) > 512


def test_an_entry_is_readable_from_the_first_byte_of_a_stream_that_goes_on(provider: Served) -> None:
    provider.script(name="begun", replies=[{"text": "ab", "chunks": 2, "gap_s": 5}, {"text": "c"}])
    marked = ask(f"script:begun {LONG}", cache_control={"type": "ephemeral"})
    with provider.events(marked) as stream:
        next(iter(stream))
        assert (provider.create(marked).usage.cache_read_input_tokens or 0) > 512
        stream.close()
    provider.wait(ended=2)
    assert [call["state"] for call in provider.ledger()] == ["client_closed", "done"]


def test_counting_agrees_with_the_bill(provider: Served) -> None:
    tools: list[Json] = [
        {"name": "look", "description": "Look around.", "input_schema": {"type": "object", "properties": {}}}
    ]
    asked = ask("How many?", system="Be brief.", tools=tools)
    counted = provider.sdk.messages.count_tokens(**{key: value for key, value in asked.items() if key != "max_tokens"})
    assert counted.input_tokens == provider.create(asked).usage.input_tokens > 354


def test_models_are_listed_with_their_limits(provider: Served) -> None:
    names = {model.id: model.max_input_tokens for model in provider.sdk.models.list()}
    assert names[MODEL] == 1_000_000
    assert provider.sdk.models.retrieve("claude-haiku-4-5").max_tokens == 64_000


@pytest.mark.parametrize("stream", [False, True])
def test_ids_are_never_the_same_twice(provider: Served, stream: bool) -> None:
    provider.script(policy="steps", steps=1, tool="look", calls=3)
    seen: list[str] = []
    for _ in range(3):
        if stream:
            with provider.sdk.messages.stream(**ask("go")) as running:
                reply: Any = running.get_final_message()
        else:
            reply = provider.create(ask("go"))
        seen += [reply.id, *(block.id for block in reply.content)]
    assert len(set(seen)) == 12


def test_the_steps_policy_counts_this_turn_s_steps_from_the_request(provider: Served) -> None:
    provider.script(name="nine", policy="steps", steps=2, tool="look", input={"path": "."}, text="Rehearsal: the end.")
    messages: list[Json] = []
    for turn in range(2):
        messages.append({"role": "user", "content": f"script:nine, turn {turn}"})
        for step in range(3):
            reply = provider.raw(ask("", messages=messages)).json()
            messages.append({"role": "assistant", "content": reply["content"]})
            if step == 2:
                assert reply["content"] == [{"type": "text", "text": "Rehearsal: the end."}]
            else:
                (call,) = reply["content"]
                assert call["input"] == {"path": "."}
                messages.append(
                    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call["id"], "content": "x"}]}
                )

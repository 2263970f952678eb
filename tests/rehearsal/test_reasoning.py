"""Proves that reasoning blocks are bound: to their text, and on the newest models to the prefix that produced them."""

from typing import Any

import pytest

from tests.rehearsal.served import Json, Served, serve

BOUND, UNBOUND, OLD = "claude-opus-5-5", "claude-opus-5", "claude-sonnet-4-5"
THINKS = {"type": "adaptive", "display": "summarized"}
MOVED = (
    "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation. "
    'Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block".'
)


def body(messages: list[Json], model: str = BOUND, **more: Any) -> Json:
    return {"model": model, "max_tokens": 2_000, "messages": messages, "thinking": THINKS, **more}


def thought(provider: Served, model: str = BOUND) -> list[Json]:
    """A conversation whose second message holds a signed block, ready for the next request."""
    provider.script(name="think", repeat=True, replies=[{"thinking": "let me see", "text": "so it is"}])
    asked: list[Json] = [{"role": "user", "content": "script:think first"}]
    reply = provider.raw(body(asked, model)).json()
    assert reply["content"][0]["thinking"] == "let me see"
    return [*asked, {"role": "assistant", "content": reply["content"]}, {"role": "user", "content": "and then?"}]


def test_a_block_sent_back_behind_its_own_prefix_is_taken(provider: Served) -> None:
    messages = thought(provider)
    assert provider.raw(body(messages)).status_code == 200
    marked: list[Json] = [{"role": "user", "content": messages[0]["content"]}, *messages[1:]]
    assert provider.raw(body(marked, max_tokens=3_000, tool_choice=None)).status_code == 200


def test_the_streamed_signature_comes_last_and_is_the_same_kind(provider: Served) -> None:
    provider.script(name="think", repeat=True, replies=[{"thinking": "let me see", "text": "so"}])
    asked: Any = body([{"role": "user", "content": "script:think first"}])
    with provider.sdk.messages.stream(**asked) as stream:
        kinds = [event.delta.type for event in stream if event.type == "content_block_delta"]
        content: list[Json] = [block.model_dump(exclude_none=True) for block in stream.get_final_message().content]
    assert kinds == ["thinking_delta", "signature_delta", "text_delta"]
    content = [{key: value for key, value in block.items() if key != "parsed_output"} for block in content]
    again = [*asked["messages"], {"role": "assistant", "content": content}, {"role": "user", "content": "on"}]
    assert provider.raw(body(again)).status_code == 200


CHANGES: list[Json] = [{"system": "Another"}, {"tools": [{"name": "look", "input_schema": {"type": "object"}}]}]


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_front_is_refused_where_reasoning_is_bound(provider: Served, change: Json) -> None:
    messages = thought(provider)
    refused = provider.raw(body(messages, **change))
    assert (refused.status_code, refused.json()["error"]["message"]) == (400, MOVED)
    messages[1]["content"] = messages[1]["content"][1:]
    assert provider.raw(body(messages, **change)).status_code == 200


def test_a_changed_earlier_message_is_refused(provider: Served) -> None:
    messages = thought(provider)
    messages[0]["content"] += "!"
    assert provider.raw(body(messages)).json()["error"]["message"] == MOVED


def test_an_older_model_takes_a_block_behind_another_prefix(provider: Served) -> None:
    messages = thought(provider, UNBOUND)
    assert provider.raw(body(messages, UNBOUND, system="Another")).status_code == 200


def test_changed_reasoning_is_refused_and_said_otherwise_in_the_latest_message(provider: Served) -> None:
    messages = thought(provider)
    messages[1]["content"][0]["thinking"] = "something else"
    latest = provider.raw(body(messages)).json()["error"]["message"]
    assert latest.startswith("messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant")
    later = [*messages, {"role": "assistant", "content": "x"}, {"role": "user", "content": "y"}]
    assert provider.raw(body(later)).json()["error"]["message"] == (
        "messages.1.content.0: Invalid `signature` in `thinking` block"
    )


def test_a_mismatch_is_dropped_when_asked_for_with_its_beta(provider: Served) -> None:
    messages = thought(provider)
    asked = body(messages, system="Another")
    asked["thinking"] = {**THINKS, "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
    assert provider.raw(asked).status_code == 400
    answer = provider.raw(asked, {"anthropic-beta": "thinking-binding-controls-2026-08-01"})
    assert answer.status_code == 200, answer.text
    kept = provider.ledger()[-1]["blocks"]
    messages[1]["content"] = messages[1]["content"][1:]
    provider.raw(body(messages, system="Another"))
    assert provider.ledger()[-1]["blocks"] == kept


def test_old_models_forget_reasoning_once_a_person_speaks(provider: Served) -> None:
    messages = thought(provider, OLD)
    provider.raw(body(messages, OLD))
    assert provider.ledger()[-1]["blocks"] == 3
    messages = thought(provider, UNBOUND)
    provider.raw(body(messages, UNBOUND))
    assert provider.ledger()[-1]["blocks"] == 4


def test_omitted_reasoning_is_an_empty_text_with_a_signature_that_is_taken_back(provider: Served) -> None:
    asked: list[Json] = [{"role": "user", "content": "first"}]
    reply = provider.raw(body(asked, thinking={"type": "adaptive", "display": "omitted"})).json()
    assert reply["content"][0]["thinking"] == ""
    again = [*asked, {"role": "assistant", "content": reply["content"]}, {"role": "user", "content": "on"}]
    assert provider.raw(body(again)).status_code == 200


def test_a_redacted_block_is_bound_too(provider: Served) -> None:
    provider.script(name="red", replies=[{"redacted": True, "text": "so", "thinking": "x"}])
    asked: list[Json] = [{"role": "user", "content": "script:red"}]
    reply = provider.raw(body(asked)).json()
    assert [block["type"] for block in reply["content"]] == ["thinking", "redacted_thinking", "text"]
    again = [*asked, {"role": "assistant", "content": reply["content"]}, {"role": "user", "content": "on"}]
    assert provider.raw(body(again)).status_code == 200
    assert provider.raw(body(again, system="Another")).status_code == 400


def test_a_restarted_provider_still_knows_its_blocks(provider: Served) -> None:
    messages = thought(provider)
    with serve() as other:
        assert other.raw(body(messages)).status_code == 200
        assert other.raw(body(messages, system="Another")).status_code == 400

"""Proves what counts as the same prefix, by what the cache bills: bytes that mean the same but differ are different."""

from collections.abc import Callable

import orjson
import pytest

from tests.rehearsal.served import Json, Served

LONG = "a sentence of some length that fills the prompt, " * 100
CALL = '{"type":"tool_use","id":"t","name":"look","input":{"b":1e2,"a":[1,-0,12345678901234567890123]}}'
BODY = (
    '{"model":"claude-sonnet-5-5","max_tokens":20,"metadata":{"user_id":"s"},'
    '"tools":[{"name":"look","input_schema":{"type":"object","properties":{"a":{"type":"number","maximum":1.50}}}}],'
    f'"system":[{{"type":"text","text":"{LONG}"}}],'
    f'"messages":[{{"role":"user","content":[{{"type":"text","text":"{LONG}"}}]}},'
    f'{{"role":"assistant","content":[{CALL}]}},'
    '{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"é \\u00e9"}],'
    '"cache_control":{"type":"ephemeral"}}]}]}'
)


def usage(provider: Served, text: str) -> Json:
    answer = provider.raw(text.encode(), {"content-type": "application/json"})
    assert answer.status_code == 200, answer.text
    return answer.json()["usage"]


CHANGES: dict[str, Callable[[str], str]] = {
    "a number written otherwise": lambda text: text.replace("1e2", "100.0"),
    "a number of the same value as an integer": lambda text: text.replace("1e2", "100"),
    "a large integer": lambda text: text.replace("12345678901234567890123", "12345678901234567890124"),
    "the sign of zero": lambda text: text.replace("-0,", "0,"),
    "a number in a tool's schema": lambda text: text.replace("1.50", "1.5"),
    "the order of keys in arguments": lambda text: text.replace(
        '{"b":1e2,"a":[1,-0,12345678901234567890123]}', '{"a":[1,-0,12345678901234567890123],"b":1e2}'
    ),
    "the order of keys in a block": lambda text: text.replace('{"type":"text","text":"é', '{"text":"é').replace(
        'u00e9"}]', 'u00e9","type":"text"}]'
    ),
    "a string for a list": lambda text: text.replace('[{"type":"text","text":"é \\u00e9"}]', '"é \\u00e9"'),
    "one character of the system prompt": lambda text: text.replace("a sentence", "A sentence", 1),
    "a tool's description": lambda text: text.replace(
        '{"name":"look","input', '{"name":"look","description":"d","input'
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_prefix_is_not_read(provider: Served, name: str) -> None:
    changed = CHANGES[name](BODY)
    assert changed != BODY
    assert usage(provider, BODY)["cache_creation_input_tokens"] > 512
    assert usage(provider, BODY)["cache_read_input_tokens"] > 512
    assert usage(provider, changed)["cache_read_input_tokens"] == 0
    call = provider.ledger("s")[-1]
    assert call["extended"] is False
    assert call["difference"].startswith(("tools.0", "system.0", "messages.1", "messages.2"))


def test_a_number_in_arguments_counts_also_where_no_schema_holds_one(provider: Served) -> None:
    plain = BODY.replace(',"maximum":1.50', "")
    assert usage(provider, plain)["cache_creation_input_tokens"] > 512
    assert usage(provider, plain.replace("1e2", "100.0"))["cache_read_input_tokens"] == 0
    assert usage(provider, plain)["cache_read_input_tokens"] > 512


def test_two_messages_are_not_one_of_two_blocks(provider: Served) -> None:
    parsed = orjson.loads(BODY)
    parsed["messages"][0]["content"].append({"type": "text", "text": "and more"})
    assert provider.raw(parsed).json()["usage"]["cache_creation_input_tokens"] > 512
    first, *rest = parsed["messages"]
    parsed["messages"] = [{"role": "user", "content": [block]} for block in first["content"]] + rest
    assert provider.raw(parsed).json()["usage"]["cache_read_input_tokens"] == 0
    assert provider.ledger("s")[-1]["differs_at"] == 4


SAME: dict[str, Callable[[str], str]] = {
    "another way to escape a letter": lambda text: text.replace("é \\u00e9", "\\u00e9 é"),
    "spaces between tokens": lambda text: text.replace('"messages":[', '"messages": [\n '),
    "the session": lambda text: text.replace('"user_id":"s"', '"user_id":"other"'),
    "the output limit": lambda text: text.replace('"max_tokens":20', '"max_tokens":21'),
    "an explicit default": lambda text: text.replace('"messages":', '"tool_choice":{"type":"auto"},"messages":'),
}


@pytest.mark.parametrize("name", SAME)
def test_what_is_no_part_of_the_prefix_may_change(provider: Served, name: str) -> None:
    changed = SAME[name](BODY)
    assert changed != BODY
    written = usage(provider, BODY)["cache_creation_input_tokens"]
    assert usage(provider, changed)["cache_read_input_tokens"] == written


def test_moving_marks_is_no_change(provider: Served) -> None:
    first = orjson.loads(BODY)
    usage(provider, BODY)
    second = orjson.loads(BODY)
    del second["messages"][2]["content"][0]["cache_control"]
    second["messages"] += [
        {"role": "assistant", "content": [{"type": "text", "text": "so"}]},
        {"role": "user", "content": [{"type": "text", "text": "on", "cache_control": {"type": "ephemeral"}}]},
    ]
    # Dumped by another library the numbers are others: the same bytes are kept by hand.
    text = (
        orjson.dumps(second)
        .decode()
        .replace(orjson.dumps(first["messages"][1]).decode(), f'{{"role":"assistant","content":[{CALL}]}}')
    )
    assert usage(provider, text.replace('"maximum":1.5}', '"maximum":1.50}'))["cache_read_input_tokens"] > 512
    assert provider.ledger("s")[-1]["extended"] is True


def test_a_choice_of_tools_or_reasoning_changes_only_what_is_read_of_messages(provider: Served) -> None:
    parsed = orjson.loads(BODY)
    parsed["system"][0]["cache_control"] = {"type": "ephemeral"}
    whole = provider.raw(parsed).json()["usage"]["cache_creation_input_tokens"]
    for change in (
        {"tool_choice": {"type": "none"}},
        {"thinking": {"type": "adaptive"}},
        {"output_config": {"effort": "low"}},
    ):
        read = provider.raw({**parsed, **change}).json()["usage"]["cache_read_input_tokens"]
        assert 512 < read < whole, change
    assert provider.raw({**parsed, "model": "claude-opus-5"}).json()["usage"]["cache_read_input_tokens"] == 0
    assert provider.raw(parsed, {"x-api-key": "another"}).json()["usage"]["cache_read_input_tokens"] == 0

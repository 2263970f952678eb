"""Proves that wrong requests are refused as the real service refuses them: status, type and text."""

import copy
import json
from collections.abc import Iterator
from typing import Any

import anthropic
import pytest

from deploy.rehearsal.loose import is_array, is_object
from tests.rehearsal.served import Json, Served

MODEL = "claude-sonnet-5-5"


def user(*blocks: Any) -> Json:
    return {
        "role": "user",
        "content": [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks],
    }


def assistant(*blocks: Any) -> Json:
    return {**user(*blocks), "role": "assistant"}


def use(name: str) -> Json:
    return {"type": "tool_use", "id": name, "name": "look", "input": {}}


def result(name: str) -> Json:
    return {"type": "tool_result", "tool_use_id": name, "content": "seen"}


def marked(text: str, ttl: str | None = None) -> Json:
    control = {"type": "ephemeral"} if ttl is None else {"type": "ephemeral", "ttl": ttl}
    return {"type": "text", "text": text, "cache_control": control}


def body(*messages: Json, **more: Any) -> Json:
    return {"model": MODEL, "max_tokens": 50, "messages": list(messages), **more}


UNANSWERED = (
    "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_x. "
    "Each `tool_use` block must have a corresponding `tool_result` block in the next message."
)
FIVE_MARKS = "A maximum of 4 blocks with cache_control may be provided. Found 5."
HOUR = (
    "messages.0.content.1.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' "
    "cache_control block. Note that blocks are processed in the following order: tools, system, messages."
)
EMPTY = "messages.{}: all messages must have non-empty content except for the optional final assistant message"
ORPHAN = (
    "messages.0.content.0: unexpected `tool_use_id` found in `tool_result` blocks: toolu_x. "
    "Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
)
SYSTEM_ROLE = (
    'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter, '
    'not "system" as an input message role.'
)
TOOL: Json = {"name": "look", "input_schema": {"type": "object"}}

WRONG: dict[str, tuple[Json, str]] = {
    "a call without its result": (body(user("a"), assistant(use("toolu_x")), user("b")), UNANSWERED),
    "a call at the end of the conversation": (body(user("a"), assistant(use("toolu_x"))), UNANSWERED),
    "a result after a text": (body(user("a"), assistant(use("toolu_x")), user("b", result("toolu_x"))), UNANSWERED),
    "a result without a call": (
        body(user(result("toolu_x"))),
        ORPHAN,
    ),
    "two calls of one id": (
        body(user("a"), assistant(use("t")), user(result("t")), assistant("b", use("t")), user(result("t"))),
        "messages.3.content.1: `tool_use` ids must be unique",
    ),
    "two results for one call": (
        body(user("a"), assistant(use("t")), user(result("t"), result("t"))),
        "messages.2.content.1: each tool_use must have a single result. Found multiple `tool_result` blocks with id: t",
    ),
    "empty content": (body(user("a"), {"role": "assistant", "content": []}, user("b")), EMPTY.format(1)),
    "an empty string": (body({"role": "user", "content": ""}), EMPTY.format(0)),
    "an empty text": (body(user("")), "messages: text content blocks must be non-empty"),
    "a blank text": (body(user(" \n")), "messages: text content blocks must contain non-whitespace text"),
    "an empty system text": (
        body(user("a"), system=[{"type": "text", "text": ""}]),
        "system: text content blocks must be non-empty",
    ),
    "the assistant first": (body(assistant("a"), user("b")), 'messages: first message must use the "user" role'),
    "five marks": (body(user(*[marked(f"{at}") for at in range(5)])), FIVE_MARKS),
    "four marks and the automatic one": (
        body(user(*[marked(f"{at}") for at in range(4)]), cache_control={"type": "ephemeral"}),
        FIVE_MARKS,
    ),
    "an hour after five minutes": (body(user(marked("a"), marked("b", "1h"))), HOUR),
    "a mark on an empty text": (
        body(user("a", marked(""))),
        "messages.0.content.1.text: cache_control cannot be set for empty text blocks",
    ),
    "a mark on reasoning": (
        body(
            user("a"),
            assistant(
                {"type": "thinking", "thinking": "", "signature": "s", "cache_control": {"type": "ephemeral"}}, "b"
            ),
            user("c"),
        ),
        "messages.1.content.0.thinking.cache_control: Extra inputs are not permitted",
    ),
    "an extra key in a message": (body({**user("a"), "ts": 1}), "messages.0.ts: Extra inputs are not permitted"),
    "an extra key in a block": (
        body(user({"type": "text", "text": "a", "id": 1})),
        "messages.0.content.0.text.id: Extra inputs are not permitted",
    ),
    "an extra key at the top": (body(user("a"), stepping=1), "stepping: Extra inputs are not permitted"),
    "a temperature": (body(user("a"), temperature=1), "temperature: Extra inputs are not permitted"),
    "top_k": (body(user("a"), top_k=5), "top_k: Extra inputs are not permitted"),
    "prefill": (
        body(user("a"), assistant("b")),
        "This model does not support assistant message prefill. The conversation must end with a user message.",
    ),
    "too large an output": (
        body(user("a"), max_tokens=128_001),
        "max_tokens: 128001 > 128000, which is the maximum allowed number of output tokens for claude-sonnet-5-5",
    ),
    "no messages": ({"model": MODEL, "max_tokens": 5}, "messages: Field required"),
    "no output limit": ({"model": MODEL, "messages": [user("a")]}, "max_tokens: Field required"),
    "an unknown role": (
        body({"role": "tool", "content": "a"}),
        "messages.0.role: Input should be 'user', 'assistant' or 'system'",
    ),
    "a system message where the model has none": (
        body(user("a"), {"role": "system", "content": "b"}),
        SYSTEM_ROLE,
    ),
    "a pre-warm that streams": (
        body(user("a"), max_tokens=0, stream=True),
        "max_tokens: 0 is not supported with streaming",
    ),
    "a pre-warm that thinks": (
        body(user("a"), max_tokens=0, thinking={"type": "adaptive"}),
        "max_tokens: 0 is not supported when thinking is enabled",
    ),
    "two tools of one name": (body(user("a"), tools=[TOOL, TOOL]), "tools: Tool names must be unique."),
    "a forced tool": (
        body(user("a"), tools=[TOOL], tool_choice={"type": "any"}),
        "tool_choice.type: forced tool use is not supported on claude-sonnet-5-5",
    ),
    "a choice without tools": (
        body(user("a"), tool_choice={"type": "none"}),
        "tool_choice: tool_choice may only be specified while providing tools",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_request_is_refused_in_the_service_s_words(provider: Served, name: str) -> None:
    wrong, message = WRONG[name]
    answer = provider.raw(wrong)
    assert answer.status_code == 400, answer.text
    request_id = answer.headers["request-id"]
    assert answer.json() == {
        "type": "error",
        "error": {"type": "invalid_request_error", "message": message},
        "request_id": request_id,
    }
    (call,) = provider.ledger()
    assert (call["state"], call["status"], call["usd"]) == ("refused", 400, None)


RIGHT: dict[str, Json] = {
    "consecutive messages of one role": body(user("a"), user("b"), assistant("c"), assistant("d"), user("e")),
    "results spread over two user messages": body(
        user("a"), assistant(use("s"), use("t")), user(result("s")), user(result("t"), "b")
    ),
    "four marks, hours first": body(user(marked("a", "1h"), marked("b", "1h"), marked("c"), marked("d", "5m"))),
    "a string for a message": body({"role": "user", "content": "a"}),
    "a result without content": body(user("a"), assistant(use("t")), user({"type": "tool_result", "tool_use_id": "t"})),
    "tools that are there and not to be used": body(user("a"), tools=[TOOL], tool_choice={"type": "none"}),
    "metadata": body(user("a"), metadata={"user_id": "s"}),
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_request_is_answered(provider: Served, name: str) -> None:
    answer = provider.raw(RIGHT[name])
    assert answer.status_code == 200, answer.text


def test_an_unknown_model_is_not_found(provider: Served) -> None:
    with pytest.raises(anthropic.NotFoundError) as told:
        provider.sdk.messages.create(
            model="claude-nothing-9", max_tokens=5, messages=[{"role": "user", "content": "a"}]
        )
    assert told.value.body == {
        "type": "error",
        "error": {"type": "not_found_error", "message": "model: claude-nothing-9"},
        "request_id": told.value.request_id,
    }


def test_a_missing_or_invalid_key_is_401(provider: Served) -> None:
    right = body(user("a"))
    missing = provider.raw(right, {"x-api-key": ""})
    assert (missing.status_code, missing.json()["error"]["type"]) == (401, "authentication_error")
    invalid = provider.raw(right, {"x-api-key": "invalid-1"})
    assert (invalid.status_code, invalid.json()["error"]["message"]) == (401, "invalid x-api-key")
    bearer = provider.raw(right, {"x-api-key": "", "authorization": "Bearer k"})
    assert bearer.status_code == 200


def test_sampling_is_taken_by_an_older_version_of_the_interface(provider: Served) -> None:
    assert provider.raw(body(user("a"), temperature=1), {"anthropic-version": "2023-06-01"}).status_code == 200
    assert provider.raw(body(user("a")), {"anthropic-version": ""}).status_code == 400


def test_a_body_above_32_megabytes_is_413(provider: Served) -> None:
    answer = provider.raw(b"[" + b" " * (32 * 1024 * 1024) + b"]")
    assert (answer.status_code, answer.json()["error"]["type"]) == (413, "request_too_large")
    assert provider.raw(body(user("a"))).status_code == 200


def test_broken_json_and_lone_surrogates_are_refused(provider: Served) -> None:
    for wrong in (b"{", b'{"model": NaN}', b'{"messages": "\\ud800"}', b"[]", b'"text"', b"\xff\xfe"):
        answer = provider.raw(wrong)
        assert (answer.status_code, answer.json()["error"]["type"]) == (400, "invalid_request_error"), wrong


def test_a_prompt_larger_than_the_window_is_refused_with_both_numbers(provider: Served) -> None:
    provider.control("window", model=MODEL, context=100)
    answer = provider.raw(body(user("a long word " * 100)))
    total = provider.sdk.messages.count_tokens(
        model=MODEL, messages=[{"role": "user", "content": [{"type": "text", "text": "a long word " * 100}]}]
    )
    assert answer.status_code == 400
    assert answer.json()["error"]["message"] == f"prompt is too long: {total.input_tokens} tokens > 100 maximum"


def test_prefill_is_taken_where_the_model_takes_it_but_not_with_a_space_at_its_end(provider: Served) -> None:
    older = {"model": "claude-sonnet-4-5"}
    assert provider.raw({**body(user("a"), assistant("so")), **older}).status_code == 200
    refused = provider.raw({**body(user("a"), assistant("so ")), **older})
    assert refused.json()["error"]["message"] == "messages: final assistant content cannot end with trailing whitespace"


WHOLE = body(
    user(marked("a", "1h"), "b"),
    assistant({"type": "thinking", "thinking": "", "signature": "s"}, "c", use("t")),
    user({"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "d"}], "is_error": False}),
    system=[marked("e", "1h")],
    tools=[
        {
            "name": "look",
            "description": "f",
            "input_schema": {"type": "object", "properties": {"a": {"type": "string"}}},
        }
    ],
    metadata={"user_id": "s"},
    tool_choice={"type": "auto"},
    thinking={"type": "adaptive", "display": "omitted"},
    output_config={"effort": "low"},
    stream=True,
)
NONSENSE: list[Any] = [None, True, -1, 1.5, 10**30, "", " ", "x", [], [[]], {}, {"type": []}, {"type": "text"}]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all values in a request."""
    yield path
    inside = value.items() if is_object(value) else enumerate(value) if is_array(value) else ()
    for key, inner in inside:
        yield from places(inner, (*path, key))


def test_any_value_replaced_by_any_nonsense_is_answered_or_refused_but_never_a_500(provider: Served) -> None:
    for path in places(WHOLE):
        for nonsense in NONSENSE:
            changed: Any = {"root": copy.deepcopy(WHOLE)}
            holder = changed
            for key in ("root", *path)[:-1]:
                holder = holder[key]
            holder[("root", *path)[-1]] = nonsense
            answer = provider.raw(json.dumps(changed["root"]).encode())
            assert answer.status_code in (200, 400, 404), (path, nonsense, answer.text)


def test_nonsense_never_breaks_the_server(provider: Served) -> None:
    contents: list[Any] = [None, 5, [None], [[]], [{"type": 5}], [{"type": "text", "text": 5}], [{}], {"type": "text"}]
    for content in contents:
        answer = provider.raw(body({"role": "user", "content": content}))
        assert answer.status_code == 400, content
    for key in ("tools", "system", "metadata", "thinking", "tool_choice", "cache_control"):
        assert provider.raw(body(user("a"), **{key: 5})).status_code == 400, key
    for path in ("/", "/v1", "/v1/messages/", "/rehearsal/nothing"):
        assert provider.http.get(path, headers={"x-api-key": "k"}).status_code == 404, path

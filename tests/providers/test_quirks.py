"""What servers of the other wires are known to do, each as they do it, and what a request of ours must look like there.

Sources: the providers' pages and public issues, as named in the table of `docs/decisions/0026`.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from shared.errors import SettingsError
from shared.providers.declaration import Reasoning
from shared.providers.resolve import checked_url, resolve
from shared.providers.table import TABLE
from shared.request import blocks, chat, foreign, responses
from shared.request.assembled import Message
from shared.request.dialect import Wire, read
from shared.settings import load
from workers.providers.assembly import Assembly, BadStream, UnexpectedBlock
from workers.providers.chat_reading import ChatReader
from workers.providers.replies import Delta, Text, ToolCall, ToolPreparing
from workers.providers.replies import Reasoning as Thought
from workers.providers.responses_reading import ResponsesReader

Json = dict[str, Any]
DONE: Json = {"type": "[DONE]"}


def assembly(deltas: list[Delta] | None = None) -> Assembly:
    into: list[Delta] = [] if deltas is None else deltas
    return Assembly(into.append, since_ms=lambda: 1.0, hour_marks=lambda: False)


def delta(finish: str | None = None, **said: Any) -> Json:
    return {"id": "c1", "model": "m", "choices": [{"index": 0, "delta": said, "finish_reason": finish}]}


def calls(*told: Json) -> Json:
    return delta(tool_calls=list(told))


def piece(arguments: Any = None, name: Any = None, **more: Any) -> Json:
    return {**more, "function": {"name": name, "arguments": arguments}}


def read_chat(*chunks: Json, reasoning: Reasoning = Reasoning.NONE) -> Assembly:
    made = assembly()
    reader = ChatReader(made, "p", reasoning)
    for chunk in chunks:
        reader.feed(chunk)
    return made


def asked(made: Assembly) -> list[tuple[str, str, str]]:
    return [(one.id, one.name, one.arguments_text) for one in made.content() if isinstance(one, ToolCall)]


HEAD = piece("", "look", index=0, id="a", type="function")
CALLS: list[tuple[str, list[Json], list[tuple[str, str, str]]]] = [
    (
        "in two pieces",
        [calls(HEAD), calls(piece('{"x"', index=0)), calls(piece(":1}", index=0))],
        [("a", "look", '{"x":1}')],
    ),
    (
        "two interleaved",
        [
            calls(HEAD),
            calls(piece("", "see", index=1, id="b")),
            calls(piece("{}", index=0)),
            calls(piece('{"y":2}', index=1)),
        ],
        [("a", "look", "{}"), ("b", "see", '{"y":2}')],
    ),
    (
        "null for what was told before",
        [calls(HEAD), calls({"index": 0, "id": None, "function": {"name": None, "arguments": "{}"}})],
        [("a", "look", "{}")],
    ),
    ("null arguments", [calls(piece(None, "look", index=0, id="a"))], [("a", "look", "{}")]),
    (
        "empty arguments, then another call",
        [calls(HEAD), calls(piece('{"z":1}', "see", index=1, id="b"))],
        [("a", "look", "{}"), ("b", "see", '{"z":1}')],
    ),
    ("arguments as an object", [calls(piece({"x": 1}, "look", index=0, id="a"))], [("a", "look", '{"x":1}')]),
    (
        "every call with index 0",
        [calls(piece("{}", "look", index=0, id="a")), calls(piece("{}", "see", index=0, id="b"))],
        [("a", "look", "{}"), ("b", "see", "{}")],
    ),
    (
        "no index at all",
        [calls(piece("{}", "look", id="a")), calls(piece("{}", "see", id="b"))],
        [("a", "look", "{}"), ("b", "see", "{}")],
    ),
    ("the name told again", [calls(HEAD), calls(piece("{}", "look", index=0, id="a"))], [("a", "look", "{}")]),
]


@pytest.mark.parametrize(("chunks", "found"), [case[1:] for case in CALLS], ids=[case[0] for case in CALLS])
def test_calls_are_put_together_however_they_are_told(chunks: list[Json], found: list[tuple[str, str, str]]) -> None:
    made = read_chat(*chunks, delta("tool_calls"), DONE)
    assert (asked(made), made.stop_reason, made.whole) == (found, "tool_use", True)


def test_a_call_that_is_cut_off_nameless_or_no_json_is_told_to_the_model_and_never_run() -> None:
    cut = read_chat(calls(piece('{"x":', "look", index=0, id="a")), delta("length"), DONE)
    nameless = read_chat(calls(piece("{}", "", index=0, id="a")), delta("tool_calls"), DONE)
    broken = read_chat(calls(piece("{'x':1}", "look", index=0, id="a")), delta("tool_calls"), DONE)
    told = [one for made in (cut, nameless, broken) for one in made.content() if isinstance(one, ToolCall)]
    assert [bool(one.malformed) for one in told] == [True, True, True]
    assert cut.stop_reason == "max_tokens"


def test_ids_that_are_missing_or_double_are_made_alike_each_time() -> None:
    chunks = (calls(piece("{}", "look", index=0), piece("{}", "see", index=1)), delta("stop"), DONE)
    first, again = asked(read_chat(*chunks)), asked(read_chat(*chunks))
    assert first == again
    assert len({call for call, _, _ in first}) == 2


def test_a_name_is_told_once_as_soon_as_it_is_known() -> None:
    deltas: list[Delta] = []
    reader = ChatReader(assembly(deltas), "p", Reasoning.NONE)
    reader.feed(calls(HEAD))
    assert ToolPreparing("look") in deltas
    for chunk in (calls(piece("{}", index=0)), delta("tool_calls"), DONE):
        reader.feed(chunk)
    assert deltas.count(ToolPreparing("look")) == 1


def test_a_thought_signature_on_a_trailing_delta_without_index_goes_back_with_its_call() -> None:
    signed = {"google": {"thought_signature": "sig=="}}
    made = read_chat(calls(HEAD), calls({"id": "a", "extra_content": signed}), delta("stop"), DONE)
    sealed = [one.raw_block_text for one in made.content() if isinstance(one, Thought)]
    sent = chat.written(
        Message("assistant", (*sealed, blocks.tool_use("a", "look", "{}")), 1), TABLE["custom"].dialect, {}
    )
    assert "sig==" not in sent[0]  # not ours to give to another provider
    mine = read({**TABLE["gemini"].dialect.told(), "by": "p"})
    told: Json = json.loads(
        chat.written(Message("assistant", (*sealed, blocks.tool_use("a", "look", "{}")), 1), mine, {})[0]
    )
    assert told["tool_calls"][0]["extra_content"] == signed
    assert "content" not in told


def test_reasoning_goes_back_only_where_it_is_wanted_and_is_there_where_it_must_be() -> None:
    chunks = (delta(reasoning_content="hm"), delta(content="yes"), delta("stop"), DONE)
    assert [type(one) for one in read_chat(*chunks).content()] == [Text]
    kept = read_chat(*chunks, reasoning=Reasoning.CONTENT).content()
    assert isinstance(kept[0], Thought)
    assert json.loads(kept[0].raw_block_text) == {
        "type": "sealed",
        "by": "p",
        "key": "reasoning_content",
        "value": "hm",
    }
    deepseek = TABLE["deepseek"].dialect
    bare = Message("assistant", (blocks.tool_use("a", "look", "{}"),), 1)
    assert json.loads(chat.written(bare, deepseek, {})[0])["reasoning_content"] == ""
    assert "reasoning_content" not in chat.written(bare, TABLE["vllm"].dialect, {})[0]


def test_details_that_come_in_pieces_are_one_entry_and_go_back_as_a_list() -> None:
    one = {"type": "reasoning.text", "index": 0, "text": "a", "signature": None}
    made = read_chat(
        delta(reasoning="a", reasoning_details=[one]),
        delta(reasoning_details=[{**one, "text": "b", "signature": "s"}]),
        delta(content="yes"),
        delta("stop"),
        DONE,
        reasoning=Reasoning.DETAILS,
    )
    sealed = [json.loads(block.raw_block_text) for block in made.content() if isinstance(block, Thought)]
    assert [entry["value"] for entry in sealed] == [[{**one, "text": "ab", "signature": "s"}]]


def test_content_in_parts_is_read_and_thoughts_in_it_are_no_answer() -> None:
    parts = [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "yes"}]
    assert list(read_chat(delta(content=parts), delta("stop"), DONE).content()) == [Text("yes")]


@pytest.mark.parametrize(
    ("usage", "found"),
    [
        ({"prompt_tokens": 10, "completion_tokens": 2}, (10, 0, 0, 2)),
        ({"prompt_tokens": 10, "completion_tokens": 2, "prompt_cache_hit_tokens": 6}, (4, 6, 0, 2)),
        ({"prompt_tokens": 10, "completion_tokens": 2,
          "prompt_tokens_details": {"cached_tokens": 6, "cache_write_tokens": 3}}, (1, 6, 3, 2)),
    ],
    ids=["plain", "hits beside it", "details"],
)  # fmt: skip
def test_inclusive_usage_becomes_disjoint_buckets(usage: Json, found: tuple[int, ...]) -> None:
    made = read_chat(delta(content="yes"), delta("stop"), {"id": "c1", "choices": [], "usage": usage}, DONE)
    told, note = made.usage()
    assert note is None
    assert told is not None
    assert (told.input, told.cache_read, told.cache_write_5m, told.output) == found


@pytest.mark.parametrize(
    ("usage", "note"),
    [
        (None, "usage_missing"),
        ({"prompt_tokens": 10}, "usage_missing"),
        ({"prompt_tokens": -5, "completion_tokens": 2}, "usage_absurd"),
        ({"prompt_tokens": 5, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 6}}, "usage_absurd"),
        ({"prompt_tokens": "5", "completion_tokens": 2}, "usage_absurd"),
        ({"prompt_tokens": 5, "completion_tokens": 0}, "usage_zero"),
    ],
)
def test_usage_that_cannot_be_is_unknown(usage: Json | None, note: str) -> None:
    made = read_chat(delta(content="yes"), {**delta("stop"), "usage": usage}, DONE)
    assert made.usage() == (None, note)


def test_a_stream_without_its_last_word_is_whole_once_it_told_its_finish_and_cut_before() -> None:
    for chunks, whole in (((delta(content="a"), delta("stop")), True), ((delta(content="a"),), False)):
        made = assembly()
        reader = ChatReader(made, "p", Reasoning.NONE)
        for chunk in chunks:
            reader.feed(chunk)
        reader.ended()
        assert made.whole is whole


@pytest.mark.parametrize(
    "chunk", [{"choices": 5}, {"choices": [5]}, delta(content=5), calls(piece(5, "look", index=0))]
)
def test_what_is_no_chunk_is_refused(chunk: Json) -> None:
    with pytest.raises(BadStream):
        read_chat(chunk)


def test_an_id_is_as_each_provider_takes_it_and_the_same_in_call_and_result() -> None:
    call = "toolu_" + "x" * 50
    said = Message("assistant", (blocks.tool_use(call, "look", "{}"),), 1)
    heard = Message("user", (blocks.tool_result(call, "a cup", is_error=True),), 2)
    for name, length in (("mistral", 9), ("azure", 37)):
        to = TABLE[name].dialect
        one: Json = json.loads(chat.written(said, to, {})[0])["tool_calls"][0]
        two: Json = json.loads(chat.written(heard, to, {})[0])
        assert one["id"] == two["tool_call_id"]
        assert len(one["id"]) == length
        assert "[the tool failed] a cup" in json.dumps(two)


def test_items_of_responses_go_back_verbatim_and_a_phase_with_its_message() -> None:
    item: Json = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x=="}
    made = assembly()
    reader = ResponsesReader(made, "openai")
    message: Json = {"type": "message", "id": "m1", "phase": "commentary", "content": []}
    events: list[Json] = [
        {"type": "response.created", "response": {"id": "r", "model": "m"}},
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "encrypted_content": ""}},
        {"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": "hm"},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.output_item.added", "output_index": 1, "item": message},
        {"type": "response.output_text.delta", "output_index": 1, "content_index": 0, "delta": "yes"},
        {"type": "response.output_item.done", "output_index": 1, "item": message},
        {"type": "response.completed", "response": {"status": "completed", "output": []}},
    ]
    for event in events:
        reader.feed(event)
    kept = [one.raw_block_text if isinstance(one, Thought) else blocks.text("yes") for one in made.content()]
    sent = [json.loads(one) for one in responses.written(Message("assistant", tuple(kept), 1), TABLE["openai"].dialect)]
    assert sent == [
        item,
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "yes"}],
            "phase": "commentary",
        },
    ]
    with pytest.raises(UnexpectedBlock):
        reader.feed({"type": "response.output_item.added", "output_index": 9, "item": {"type": "web_search_call"}})


def test_sealed_blocks_go_to_nobody_else() -> None:
    mine = foreign.seal("openai", "item", {"type": "reasoning"})
    said = Message("assistant", (mine, blocks.text("yes")), 1)
    assert len(responses.written(said, TABLE["openai"].dialect)) == 2
    assert chat.written(said, TABLE["azure"].dialect, {}) == (
        '{"role":"assistant","content":[{"type":"text","text":"yes"}]}',
    )


@pytest.mark.parametrize(
    ("given", "name", "wire", "url"),
    [
        ({}, "anthropic", Wire.ANTHROPIC, "https://api.anthropic.com"),
        ({"kind": "responses"}, "openai", Wire.RESPONSES, "https://api.openai.com/v1"),
        ({"kind": "chat_completions"}, "openai", Wire.CHAT, "https://api.openai.com/v1"),
        ({"provider": "openai"}, "openai", Wire.RESPONSES, "https://api.openai.com/v1"),
        ({"provider": "openai", "kind": "chat_completions"}, "openai", Wire.CHAT, "https://api.openai.com/v1"),
        ({"base_url": "https://api.deepseek.com/"}, "deepseek", Wire.CHAT, "https://api.deepseek.com/v1"),
        ({"base_url": "https://x.openai.azure.com/openai/v1/"}, "azure", Wire.CHAT, "https://x.openai.azure.com/openai/v1"),
        ({"base_url": "https://bedrock-runtime.eu-west-1.amazonaws.com/"}, "bedrock", Wire.CONVERSE,
         "https://bedrock-runtime.eu-west-1.amazonaws.com"),
        ({"kind": "bedrock_converse", "base_url": "http://127.0.0.1:9/aws/model/m/converse"}, "bedrock", Wire.CONVERSE,
         "http://127.0.0.1:9/aws"),
        ({"provider": "bedrock", "kind": "chat_completions", "base_url": "https://bedrock-runtime.eu-west-1.amazonaws.com/openai/v1"},
         "bedrock", Wire.CHAT, "https://bedrock-runtime.eu-west-1.amazonaws.com/openai/v1"),
        ({"provider": "mistral", "base_url": "http://127.0.0.1:9"}, "mistral", Wire.CHAT, "http://127.0.0.1:9/v1"),
        ({"base_url": "http://10.0.0.5:8000/v1/chat/completions"}, "custom", Wire.CHAT, "http://10.0.0.5:8000/v1"),
        ({"base_url": "http://host:1", "model": "claude-x"}, "anthropic", Wire.ANTHROPIC, "http://host:1"),
    ],
)  # fmt: skip
def test_the_wire_is_what_is_explicit_then_the_provider_then_the_address_then_the_default(
    given: dict[str, str], name: str, wire: Wire, url: str
) -> None:
    asked_for: Any = {"kind": None, "provider": None, "base_url": "", "model": "m", **given}
    found = resolve(**asked_for)
    assert (found.name, found.wire, found.base_url) == (name, wire, url)


@pytest.mark.parametrize(
    "url",
    ["ftp://x", "http://", "http://u:p@x", "https://x/v1?a=1", "http://api.example.com/v1", "http://8.8.8.8", "x"],
)
def test_an_address_that_cannot_be_is_refused_with_its_setting(url: str) -> None:
    with pytest.raises(SettingsError, match="NIGHTSHIFT_PROVIDER_BASE_URL"):
        checked_url(url, Wire.CHAT)


def test_only_the_provider_s_own_key_is_read_from_the_environment() -> None:
    keys = {"ANTHROPIC_API_KEY": "sk-ant-1", "OPENAI_API_KEY": "sk-proj-1"}
    assert load(keys).provider_key == "sk-ant-1"
    assert load({**keys, "NIGHTSHIFT_PROVIDER": "openai"}).provider_key == "sk-proj-1"
    assert load({**keys, "NIGHTSHIFT_PROVIDER": "deepseek"}).provider_key == ""

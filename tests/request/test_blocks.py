"""Blocks keep their exact source text: cut, joined, spliced, never dumped a second time."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.request import blocks
from tests.request.made import STEADY
from tests.request.test_canonical import anything

THINKING = '{"type":"thinking","thinking":"so 1.0 is 1e0","signature":"c2ln\\u002b"}'
padding = st.text(" \t\r\n", max_size=3)


@STEADY
@given(st.lists(anything, max_size=5), padding, st.booleans())
def test_split_gives_back_the_source_of_each_element(values: list[object], blank: str, ascii_only: bool) -> None:
    texts = [json.dumps(value, ensure_ascii=ascii_only) for value in values]
    array = f"{blank}[{blank}" + f"{blank},{blank}".join(texts) + f"{blank}]{blank}"
    assert blocks.split(array) == tuple(texts)


@STEADY
@given(st.lists(anything, max_size=5))
def test_split_undoes_join(values: list[object]) -> None:
    texts = tuple(json.dumps(value) for value in values)
    assert blocks.split(blocks.join(texts)) == texts


@pytest.mark.parametrize(
    "text", ["", "{}", "[", "[1", "[1,", "[1,]", "[,1]", "[1 2]", "[1]]", "[1] x", "]", "[}", "null", "[" * 100_000]
)
def test_split_refuses_what_is_not_one_array(text: str) -> None:
    with pytest.raises(ValueError):
        blocks.split(text)


@pytest.mark.parametrize(
    "arguments", ['{"b": 1e2,\n "a":1.0}', '{"ä":"\\u00e4","a":{"a":0.1e-7}}', "{}", '{"n":123456789012345678901}']
)
def test_the_models_own_argument_text_is_spliced_in_raw(arguments: str) -> None:
    assert blocks.tool_use("c1", "read_file", arguments).endswith(f',"input":{arguments}}}')
    assert blocks.parse(blocks.tool_use("c1", "read_file", arguments))["input"] == json.loads(arguments)


@pytest.mark.parametrize(
    "arguments", ["", "[]", "null", '{"a":NaN}', '{"a":1', '{"a":1}{"b":2}', '{"a":1}},"x":{"b":2']
)
def test_arguments_that_are_not_one_object_are_refused(arguments: str) -> None:
    with pytest.raises(ValueError):
        blocks.tool_use("c1", "read_file", arguments)


def test_a_raw_surrogate_in_arguments_is_escaped_so_that_the_block_encodes() -> None:
    assert b"\\ud800" in blocks.tool_use("c1", "t", '{"a":"\ud800"}').encode()


def test_a_result_is_always_a_list_and_says_when_it_is_an_error() -> None:
    assert blocks.tool_result("c1", "ok") == (
        '{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"ok"}]}'
    )
    assert blocks.parse(blocks.tool_result("c1", "no", is_error=True))["is_error"] is True


@pytest.mark.parametrize("nothing", ["", " \n\t"])
def test_a_blank_result_says_that_there_was_no_output(nothing: str) -> None:
    assert blocks.text_of(blocks.tool_result("c1", nothing)) == blocks.NO_OUTPUT


@pytest.mark.parametrize(
    ("block", "kind"),
    [
        (blocks.text("a"), "text"),
        (blocks.tool_use("c", "t", "{}"), "tool_use"),
        (blocks.tool_result("c", "r"), "tool_result"),
        ('{"source":{"type":"base64"},"type":"image"}', "image"),
        (' { "type" : "text" , "text":"x"}'.strip(), "text"),
        ("{}", ""),
    ],
)
def test_the_kind_of_a_block_is_its_type_wherever_it_stands(block: str, kind: str) -> None:
    assert blocks.kind(block) == kind


def test_set_text_keeps_the_other_keys_and_their_order() -> None:
    result = '{"tool_use_id":"c1","type":"tool_result","content":"old","is_error":true}'
    assert blocks.set_text(result, "new") == (
        '{"tool_use_id":"c1","type":"tool_result","content":[{"type":"text","text":"new"}],"is_error":true}'
    )
    assert blocks.set_text(blocks.text("old"), "new") == blocks.text("new")
    with pytest.raises(ValueError, match="no text to set"):
        blocks.set_text(blocks.tool_use("c", "t", "{}"), "new")


def test_a_line_appended_to_a_result_is_a_text_of_its_own() -> None:
    grown = blocks.append_text(blocks.tool_result("c1", "ok"), "7 of 10 steps used")
    assert blocks.parse(grown)["content"] == [
        {"type": "text", "text": "ok"},
        {"type": "text", "text": "7 of 10 steps used"},
    ]
    assert blocks.append_text(blocks.text("a"), "b") == blocks.text("a\n\nb")
    bare = '{"type":"tool_result","tool_use_id":"c1","content":"ok"}'
    assert blocks.text_of(blocks.append_text(bare, "more")) == "ok\n\nmore"


def test_a_stub_keeps_the_ids_that_pair_call_and_result() -> None:
    call = blocks.tool_use("c1", "write_file", '{"path":"a","text":"long"}')
    assert blocks.stub(call, "4 MB omitted") == blocks.tool_use("c1", "write_file", '{"omitted":"4 MB omitted"}')
    assert blocks.stub(call, '{"path":"a"}') == blocks.tool_use("c1", "write_file", '{"path":"a"}')
    assert blocks.stub(blocks.tool_result("c1", "long", True), "short") == blocks.tool_result("c1", "short", True)
    assert blocks.stub('{"type":"image","source":{}}', "an image") == blocks.text("an image")


def test_reasoning_comes_back_verbatim_and_at_its_index() -> None:
    other = '{"type":"redacted_thinking","data":"x"}'
    column = blocks.reasoning([(2, other), (0, THINKING)])
    assert blocks.split_reasoning(column) == ((0, THINKING), (2, other))
    content = (blocks.text("a"), blocks.tool_use("c", "t", "{}"))
    assert blocks.splice(content, blocks.split_reasoning(column)) == (THINKING, content[0], other, content[1])


def test_reasoning_that_was_not_written_by_us_is_refused() -> None:
    with pytest.raises(ValueError, match=r"blocks\.reasoning"):
        blocks.split_reasoning(f"[{THINKING}]")


def test_only_signed_reasoning_is_reasoning() -> None:
    assert [blocks.is_reasoning(one) for one in (THINKING, '{"type":"redacted_thinking"}', blocks.text("x"))] == [
        True,
        True,
        False,
    ]


@STEADY
@given(st.text(max_size=4), st.sampled_from(["", "x", '"text":', "\\", '","text":"']))
def test_a_block_that_shows_at_once_has_a_text_to_be_seen(head: str, tail: str) -> None:
    block = blocks.text(head + tail)
    assert not blocks.shows_at_once(block) or blocks.text_of(block).strip()


@pytest.mark.parametrize(
    ("block", "shows"),
    [
        (blocks.text("a"), True),
        (blocks.text('"text":'), False),
        (blocks.text("\u3000a"), False),
        ('{"type":"text","text":"a","text":""}', False),
        ('{"type": "text", "text": "a"}', False),
    ],
)
def test_what_is_not_as_we_write_it_must_be_parsed(block: str, shows: bool) -> None:
    assert blocks.shows_at_once(block) is shows

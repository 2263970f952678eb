"""Where the breakpoints go, and each place where none may go."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from shared.request import blocks, cache_plan
from shared.request.cache_plan import ANTHROPIC, ENVELOPE, UNMARKED, PlanState
from shared.request.marked import Mark, MarkedRequest, Place, Ttl, marked_from
from shared.request.projection import MessageRow, Piece, Prefix, extend, project, with_tail
from shared.values import Purpose
from tests.request.made import PREFIX, answer, calls, conversation, result, row, thinking, user

HOUR = PlanState(ttl=Ttl.HOUR)
PARAMS = '"model":"m","max_tokens":10'


def placed(marked: MarkedRequest) -> list[tuple[str, int]]:
    return [(one.place.value, one.at) for one in marked.marks]


def plan(rows: list[MessageRow], state: PlanState = PlanState(), prefix: Prefix = PREFIX) -> MarkedRequest:  # noqa: B008  frozen
    return cache_plan.place(project(prefix, rows), state)


def test_the_first_request_marks_each_tier_and_its_end() -> None:
    """The context tier's end too: siblings share all before it, and are told apart in the tier after it."""
    marked = plan([user(1, "hello")])
    assert placed(marked) == [("system", 0), ("system", 1), ("system", 2), ("message", 1)]
    assert marked.end_message_id == 1


def test_the_next_request_is_pinned_where_the_one_before_wrote() -> None:
    marked = plan(conversation(), PlanState(last_breakpoint_message_id=4))
    assert placed(marked) == [("system", 0), ("system", 2), ("message", 4), ("message", 8)]
    assert marked.end_message_id == 8


def test_it_is_pinned_exactly_however_many_blocks_ago_that_was() -> None:
    names = [f"c{number}" for number in range(30)]
    rows = [user(1, "a"), calls(2, *names), *(result(3 + number, name) for number, name in enumerate(names))]
    assert placed(plan(rows, PlanState(last_breakpoint_message_id=1)))[2:] == [("message", 1), ("message", 32)]


def test_over_a_long_session_every_request_is_pinned_to_the_end_of_the_one_before() -> None:
    rows, last = [user(1, "a")], None
    for step in range(2, 60, 4):
        marked = plan(rows, PlanState(last_breakpoint_message_id=last))
        assert len(marked.marks) <= cache_plan.MOST_MARKS
        assert last is None or ("message", last) in placed(marked)
        last = marked.end_message_id
        rows += [calls(step, f"a{step}", f"b{step}"), result(step + 1, f"a{step}"), result(step + 2, f"b{step}")]


def test_the_first_request_after_an_edit_marks_both_ends_of_the_region_too() -> None:
    """What is cut next begins behind that region: without an entry at its end, all of it would be written again."""
    state = PlanState(last_breakpoint_message_id=2, region_end_message_id=4)
    assert placed(plan(conversation(), state)) == [("system", 2), ("message", 2), ("message", 4), ("message", 8)]
    unpinned = plan(conversation(), PlanState(region_end_message_id=4))
    assert placed(unpinned) == [("system", 1), ("system", 2), ("message", 4), ("message", 8)]
    at_its_end = plan(conversation(), PlanState(last_breakpoint_message_id=4, region_end_message_id=4))
    assert placed(at_its_end) == placed(plan(conversation(), PlanState(last_breakpoint_message_id=4)))


def test_a_repeated_request_carries_one_mark_where_pinned_and_end_are_one() -> None:
    assert placed(plan(conversation(), PlanState(last_breakpoint_message_id=8)))[2:] == [("message", 8)]


def test_a_pin_that_is_no_longer_there_leaves_only_the_new_end() -> None:
    assert placed(plan(conversation(), PlanState(last_breakpoint_message_id=77)))[3:] == [("message", 8)]


@pytest.mark.parametrize(
    "prefix",
    [
        replace(PREFIX, stable_length=3),
        replace(PREFIX, system_text=blocks.join([blocks.text("one tier")]), stable_length=8),
    ],
)
def test_without_a_static_prefix_to_split_three_go_on_the_tail(prefix: Prefix) -> None:
    marked = plan(conversation(), PlanState(last_breakpoint_message_id=6), prefix)
    last = 2 if prefix.stable_length == 3 else 0
    assert placed(marked) == [("system", last), ("message", 4), ("message", 6), ("message", 8)]


def test_without_a_system_prompt_the_last_tool_carries_the_mark() -> None:
    bare = replace(PREFIX, system_text="[]", stable_length=0)
    marked = plan([user(1, "a")], HOUR, bare)
    assert placed(marked) == [("tools", 0), ("message", 1)]
    body: dict[str, Any] = json.loads(marked.body(PARAMS))
    assert [tool.get("cache_control") for tool in body["tools"]] == [None, {"type": "ephemeral", "ttl": "1h"}]
    assert "system" not in body


@pytest.mark.parametrize(
    ("block", "carries"),
    [
        (blocks.text("x"), True),
        (blocks.text(""), False),
        (blocks.text(" \n"), False),
        (thinking("s"), False),
        ('{"type":"redacted_thinking","data":"x"}', False),
        (blocks.tool_use("c", "t", "{}"), True),
        (blocks.tool_result("c", "r"), True),
        ('{"type":"image","source":{}}', True),
    ],
)
def test_can_carry_refuses_reasoning_and_empty_text(block: str, carries: bool) -> None:
    assert cache_plan.can_carry(block) is carries


def test_the_end_moves_to_the_last_message_that_can_carry_a_mark() -> None:
    silent = row(9, "assistant", reasoning=blocks.reasoning([(0, thinking("s"))]))
    assert plan([*conversation(), silent]).end_message_id == 8
    assert plan([*conversation(), row(9, "user", blocks.text(" "))]).end_message_id == 8


def test_is_boundary_is_never_inside_a_tool_run() -> None:
    pieces = project(PREFIX, conversation()).pieces
    assert [cache_plan.is_boundary(pieces, index) for index in range(len(pieces))] == [
        True,  # the question
        False,  # two calls, not answered yet
        False,  # the first of two results
        True,  # the last result of the batch
        False,
        True,
        True,
        True,
    ]


def test_results_followed_by_steering_are_a_boundary() -> None:
    pieces = project(PREFIX, [user(1, "a"), calls(2, "c"), result(3, "c"), user(4, "stop that")]).pieces
    assert cache_plan.is_boundary(pieces, 2)


def test_route_honours_no_mark_on_an_envelope_message_that_is_nothing_but_calls() -> None:
    only = Piece(1, "assistant", (thinking("s"), blocks.tool_use("c", "t", "{}")))
    said = Piece(1, "assistant", (blocks.text("I look."), blocks.tool_use("c", "t", "{}")))
    answered = Piece(1, "user", (blocks.tool_result("c", "r"),))
    assert [cache_plan.route_honours(ENVELOPE, piece) for piece in (only, said, answered)] == [False, True, True]
    assert cache_plan.route_honours(ANTHROPIC, only)


def test_clamp_ttl_gives_no_hour_where_the_route_knows_five_minutes() -> None:
    assert [cache_plan.clamp_ttl(ttl, ENVELOPE) for ttl in Ttl] == [Ttl.MINUTES, Ttl.MINUTES]
    assert [cache_plan.clamp_ttl(ttl, ANTHROPIC) for ttl in Ttl] == list(Ttl)
    assert {one.ttl for one in plan(conversation(), replace(HOUR, route=ENVELOPE)).marks} == {Ttl.MINUTES}


def test_clamp_ttl_holds_where_only_messages_carry_marks() -> None:
    bare = replace(PREFIX, system_text="[]", tools_text="[]", stable_length=0)
    marked = plan([user(1, "a")], replace(HOUR, route=ENVELOPE), bare)
    assert marked.marks == (Mark(Place.MESSAGE, 1, Ttl.MINUTES),)


def test_a_blank_system_block_carries_no_mark() -> None:
    blank = replace(PREFIX, system_text=blocks.join([blocks.text("You work."), blocks.text(" ")]), stable_length=9)
    assert placed(plan([user(1, "a")], prefix=blank)) == [("system", 0), ("message", 1)]


def test_a_pin_on_a_row_that_ends_in_reasoning_is_given_up() -> None:
    silent = row(2, "assistant", reasoning=blocks.reasoning([(0, thinking("s"))]))
    marked = plan([user(1, "a"), silent, user(3, "b")], PlanState(last_breakpoint_message_id=2))
    assert placed(marked) == [("system", 0), ("system", 1), ("system", 2), ("message", 3)]


def test_a_request_without_tools_or_system_prompt_has_no_such_keys() -> None:
    bare = replace(PREFIX, system_text="[]", tools_text="[]", stable_length=0)
    body: dict[str, Any] = json.loads(plan([user(1, "a")], PlanState(route=UNMARKED), bare).body(""))
    assert body == {"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}]}]}


def test_an_hour_never_stands_after_five_minutes() -> None:
    marked = plan(conversation(), PlanState(ttl=Ttl.HOUR, front_ttl=Ttl.MINUTES))
    assert {one.ttl for one in marked.marks} == {Ttl.MINUTES}
    marked = plan(conversation(), PlanState(ttl=Ttl.MINUTES, front_ttl=Ttl.HOUR))
    assert [one.ttl for one in marked.marks] == [Ttl.HOUR, Ttl.HOUR, Ttl.HOUR, Ttl.MINUTES]
    hour, minutes = (Mark(Place.MESSAGE, 1, ttl) for ttl in (Ttl.HOUR, Ttl.MINUTES))
    assert cache_plan.descending([hour, minutes, hour]) == (hour, minutes, minutes)


def test_the_last_call_and_a_route_without_marks_carry_none() -> None:
    for state in (PlanState(purpose=Purpose.FINAL), PlanState(route=UNMARKED)):
        marked = plan(conversation(), replace(state, last_breakpoint_message_id=4))
        assert (marked.marks, marked.end_message_id, marked.marks_text) == ((), None, "[]")
        assert b"cache_control" not in marked.body(PARAMS)


def test_a_summary_call_reads_the_cache_and_writes_nothing_that_nobody_reads() -> None:
    request = with_tail(project(PREFIX, conversation()), [blocks.text("Sum up.")])
    marked = cache_plan.place(request, PlanState(purpose=Purpose.SUMMARY, last_breakpoint_message_id=6))
    assert placed(marked) == [("system", 0), ("system", 2), ("message", 6)]
    assert marked.end_message_id is None


def test_an_instruction_that_is_no_row_never_carries_the_end() -> None:
    request = with_tail(project(PREFIX, conversation()), [blocks.text("Go on.")])
    assert cache_plan.place(request, PlanState()).end_message_id == 8


def test_a_request_without_messages_is_marked_on_its_floor() -> None:
    marked = plan([])
    assert placed(marked) == [("system", 0), ("system", 1), ("system", 2)]
    assert json.loads(marked.body(PARAMS))["messages"] == []


def test_the_body_is_parameters_tools_system_messages_with_the_marks_in_their_places() -> None:
    text = plan([user(1, "a"), answer(2, "b"), user(3, "c")], replace(HOUR, last_breakpoint_message_id=1)).body(PARAMS)
    mark: dict[str, Any] = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
    body: dict[str, Any] = json.loads(text)
    assert list(body) == ["model", "max_tokens", "tools", "system", "messages"]
    assert body["tools"] == json.loads(PREFIX.tools_text)
    system = json.loads(PREFIX.system_text)
    assert body["system"] == [system[0] | mark, system[1], system[2] | mark]
    assert body["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "a"} | mark]},
        {"role": "assistant", "content": [{"type": "text", "text": "b"}]},
        {"role": "user", "content": [{"type": "text", "text": "c"} | mark]},
    ]
    assert PREFIX.tools_text.encode() in text


def test_five_minutes_is_written_without_its_name() -> None:
    assert b'"cache_control":{"type":"ephemeral"}}' in plan([user(1, "a")]).body(PARAMS)


def test_a_mark_in_a_merged_message_stands_on_the_row_it_names() -> None:
    rows = [user(1, "a"), calls(2, "x", "y"), result(3, "x"), result(4, "y"), user(5, "and?")]
    body: dict[str, Any] = json.loads(plan(rows, PlanState(last_breakpoint_message_id=4)).body(PARAMS))
    assert [("cache_control" in block) for block in body["messages"][2]["content"]] == [False, True, True]


def test_the_same_rows_and_marks_give_the_same_bytes_again() -> None:
    rows = conversation()
    state = replace(HOUR, last_breakpoint_message_id=4)
    grown = cache_plan.place(extend(project(PREFIX, rows[:5]), rows[5:]), state)
    again = marked_from(project(PREFIX, rows), grown.marks_text)
    assert again.body(PARAMS) == grown.body(PARAMS)
    assert (again.end_message_id, again.digest, again.block_count) == (8, grown.digest, grown.block_count)


@pytest.mark.parametrize(
    "marks",
    [
        '[{"place":"message","at":99,"ttl":"5m"}]',
        '[{"place":"system","at":3,"ttl":"5m"}]',
        '[{"place":"nowhere","at":0,"ttl":"5m"}]',
        '[{"place":"system","at":0,"ttl":"2h"}]',
        '[{"at":0}]',
        "{}",
    ],
)
def test_marks_that_do_not_fit_the_request_are_refused(marks: str) -> None:
    with pytest.raises(ValueError):
        marked_from(project(PREFIX, conversation()), marks)


def test_a_marked_request_cannot_be_touched() -> None:
    marked = plan(conversation())
    with pytest.raises(AttributeError):
        marked.marks = ()  # pyright: ignore[reportAttributeAccessIssue]  that it is refused is what is tested

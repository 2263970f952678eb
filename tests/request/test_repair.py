"""Repair: whatever stands in a transcript, what goes out obeys the provider, and a healthy one goes out untouched."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.request import assembled, blocks
from shared.request.assembled import Message, Piece
from shared.request.repair import Repair, RepairKind, mend, repair
from shared.request.wellformed import Known, grown


def said(text: str) -> str:
    return blocks.text(text)


def call(call_id: str, arguments: str = "{}") -> str:
    return blocks.tool_use(call_id, "look", arguments)


def result(call_id: str, text: str = "seen") -> str:
    return blocks.tool_result(call_id, text)


THINKING = '{"type":"thinking","thinking":"hm","signature":"s"}'


def user(last_id: int, *block_texts: str) -> Message:
    return Message("user", block_texts, last_id)


def assistant(last_id: int, *block_texts: str) -> Message:
    return Message("assistant", block_texts, last_id)


def shape(messages: Any) -> list[tuple[str, list[str]]]:
    """Role and blocks, each block as its kind and the call it makes or answers."""
    found: list[tuple[str, list[str]]] = []
    for message in cast("tuple[Message, ...]", messages):
        names: list[str] = []
        for block in message.blocks:
            value = json.loads(block)
            names.append(":".join(filter(None, (value["type"], value.get("id") or value.get("tool_use_id")))))
        found.append((message.role, names))
    return found


HEALTHY = (
    user(1, said("look")),
    assistant(2, THINKING, said("I look"), call("a"), call("b")),
    user(4, result("a"), result("b"), said("and hurry")),
    assistant(5, said("done")),
    user(6, said("thanks")),
)


def test_a_healthy_transcript_comes_back_as_the_same_object() -> None:
    mended, repairs = repair(HEALTHY)
    assert mended is HEALTHY
    assert repairs == ()


CASES: list[tuple[str, tuple[Message, ...], list[tuple[str, list[str]]], tuple[Repair, ...]]] = [
    (
        "a call without a result is answered",
        (user(1, said("x")), assistant(2, call("a"), call("b")), user(3, result("b"), said("y"))),
        [
            ("user", ["text"]),
            ("assistant", ["tool_use:a", "tool_use:b"]),
            ("user", ["tool_result:b", "tool_result:a", "text"]),
        ],
        (Repair(RepairKind.MISSING_RESULT, 3, "a"),),
    ),
    (
        "a call at the very end is answered",
        (user(1, said("x")), assistant(2, call("a"))),
        [("user", ["text"]), ("assistant", ["tool_use:a"]), ("user", ["tool_result:a"])],
        (Repair(RepairKind.MISSING_RESULT, 2, "a"),),
    ),
    (
        "a result without a call is left out",
        (user(1, said("x")), assistant(2, said("y")), user(3, result("z"), said("w"))),
        [("user", ["text"]), ("assistant", ["text"]), ("user", ["text"])],
        (Repair(RepairKind.ORPHAN_RESULT, 3, "z"),),
    ),
    (
        "a message of orphans vanishes and its neighbours merge",
        (
            user(1, said("x")),
            assistant(2, said("y")),
            user(3, result("z")),
            assistant(4, said("w")),
            user(5, said("v")),
        ),
        [("user", ["text"]), ("assistant", ["text", "text"]), ("user", ["text"])],
        (
            Repair(RepairKind.ORPHAN_RESULT, 3, "z"),
            Repair(RepairKind.EMPTY_MESSAGE, 3, "user"),
            Repair(RepairKind.MERGED, 4, "assistant"),
        ),
    ),
    (
        "results come first",
        (user(1, said("x")), assistant(2, call("a")), user(3, said("wait"), result("a"))),
        [("user", ["text"]), ("assistant", ["tool_use:a"]), ("user", ["tool_result:a", "text"])],
        (Repair(RepairKind.RESULTS_FIRST, 3),),
    ),
    (
        "a second result is left out",
        (user(1, said("x")), assistant(2, call("a")), user(3, result("a"), result("a", "again"))),
        [("user", ["text"]), ("assistant", ["tool_use:a"]), ("user", ["tool_result:a"])],
        (Repair(RepairKind.DOUBLE_RESULT, 3, "a"),),
    ),
    (
        "a late result answers nothing",
        (
            user(1, said("x")),
            assistant(2, call("a")),
            user(3, said("y")),
            assistant(4, said("z")),
            user(5, result("a"), said("w")),
        ),
        [
            ("user", ["text"]),
            ("assistant", ["tool_use:a"]),
            ("user", ["tool_result:a", "text"]),
            ("assistant", ["text"]),
            ("user", ["text"]),
        ],
        (Repair(RepairKind.MISSING_RESULT, 3, "a"), Repair(RepairKind.ORPHAN_RESULT, 5, "a")),
    ),
    (
        "an id that stood before becomes another, with its result",
        (
            user(1, said("x")),
            assistant(2, call("a")),
            user(3, result("a")),
            assistant(4, call("a", '{"n":1e2}')),
            user(5, result("a")),
        ),
        [
            ("user", ["text"]),
            ("assistant", ["tool_use:a"]),
            ("user", ["tool_result:a"]),
            ("assistant", ["tool_use:a_2"]),
            ("user", ["tool_result:a_2"]),
        ],
        (Repair(RepairKind.DOUBLE_ID, 4, "a"),),
    ),
    (
        "one id twice in one message",
        (user(1, said("x")), assistant(2, call("a"), call("a")), user(3, result("a", "1"), result("a", "2"))),
        [
            ("user", ["text"]),
            ("assistant", ["tool_use:a", "tool_use:a_2"]),
            ("user", ["tool_result:a", "tool_result:a_2"]),
        ],
        (Repair(RepairKind.DOUBLE_ID, 2, "a"),),
    ),
    (
        "blank text and empty messages are left out",
        (user(1, said("x")), assistant(2, said(" \n")), user(3, said(""), said("y"))),
        [("user", ["text", "text"])],
        (
            Repair(RepairKind.BLANK_TEXT, 2),
            Repair(RepairKind.BLANK_TEXT, 3),
            Repair(RepairKind.EMPTY_MESSAGE, 2, "assistant"),
            Repair(RepairKind.MERGED, 3, "user"),
        ),
    ),
    (
        "the first role is the user's, and so is the last",
        (assistant(1, said("y")),),
        [("user", ["text"]), ("assistant", ["text"]), ("user", ["text"])],
        (Repair(RepairKind.FIRST_ROLE, 1), Repair(RepairKind.LAST_ROLE, 1)),
    ),
    ("nothing at all", (), [("user", ["text"])], (Repair(RepairKind.FIRST_ROLE, 0),)),
    (
        "blocks that their role may not carry",
        (user(1, said("x"), call("a"), THINKING), assistant(2, result("a"), said("y")), user(3, said("z"))),
        [("user", ["text"]), ("assistant", ["text"]), ("user", ["text"])],
        (
            Repair(RepairKind.MISPLACED_BLOCK, 1, "tool_use"),
            Repair(RepairKind.MISPLACED_BLOCK, 1, "thinking"),
            Repair(RepairKind.MISPLACED_BLOCK, 2, "tool_result"),
        ),
    ),
    (
        "a message does not end with reasoning",
        (user(1, said("x")), assistant(2, said("y"), THINKING), user(3, said("z"))),
        [("user", ["text"]), ("assistant", ["text"]), ("user", ["text"])],
        (Repair(RepairKind.TRAILING_REASONING, 2, "thinking"),),
    ),
    (
        "what cannot be read is left out",
        (user(1, said("x"), '{"type":', "[]", '"text"'), Message("system", (said("y"),), 2)),
        [("user", ["text"])],
        (
            Repair(RepairKind.UNREADABLE_BLOCK, 1),
            Repair(RepairKind.UNREADABLE_BLOCK, 1),
            Repair(RepairKind.UNREADABLE_BLOCK, 1),
            Repair(RepairKind.UNKNOWN_ROLE, 2, "system"),
        ),
    ),
]


@pytest.mark.parametrize(
    ("messages", "expected", "repairs"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_each_damage_has_its_repair(
    messages: tuple[Message, ...], expected: list[tuple[str, list[str]]], repairs: tuple[Repair, ...]
) -> None:
    mended, made = repair(messages)
    assert shape(mended) == expected
    assert made == repairs


def test_a_renamed_call_keeps_every_other_byte() -> None:
    odd = '{ "type" : "tool_use", "id":"a", "name":"look", "input":{"id":"a","n":1e2,"z":1.0} }'
    messages = (user(1, said("x")), assistant(2, call("a"), odd), user(3, result("a"), result("a")))
    mended, _ = repair(messages)
    assert mended[1].blocks[1] == odd.replace('"id":"a", "name"', '"id":"a_2", "name"')


def test_a_call_whose_first_id_is_not_its_own_is_renamed_all_the_same() -> None:
    odd = '{"type":"tool_use","input":{"id":"deep"},"id":"a","name":"look"}'
    mended, _ = repair((user(1, said("x")), assistant(2, call("a"), odd), user(3, result("a"), result("a"))))
    assert json.loads(mended[1].blocks[1]) == {"type": "tool_use", "input": {"id": "deep"}, "id": "a_2", "name": "look"}


# The rules of the provider, written down a second time and independently of the code


def breaches(messages: Any) -> list[str]:
    found: list[str] = []
    open_calls: list[str] = []
    seen: set[str] = set()
    role = "assistant"
    for message in cast("tuple[Message, ...]", messages):
        if message.role == role:
            found.append("roles do not alternate")
        role = message.role
        values = [json.loads(block) for block in message.blocks]
        if not values:
            found.append("empty message")
        answers = [value["tool_use_id"] for value in values if value["type"] == "tool_result"]
        if sorted(answers) != sorted(open_calls):
            found.append(f"{open_calls} answered by {answers}")
        if any(value["type"] != "tool_result" for value in values[: len(answers)]):
            found.append("results are not first")
        open_calls = [value["id"] for value in values if value["type"] == "tool_use"]
        if len(set(open_calls)) != len(open_calls) or seen & set(open_calls):
            found.append("an id twice")
        seen |= set(open_calls)
        found += [
            "blank text" for value in values if value["type"] == "text" and not str(value.get("text") or "").strip()
        ]
        if role == "assistant" and values and "thinking" in values[-1]["type"]:
            found.append("ends with reasoning")
    if role != "user" or open_calls:
        found.append("does not end with the user")
    return found


IDS = st.sampled_from(["a", "b", "c", "a_2", ""])
BLOCKS = st.one_of(
    st.sampled_from(["", " ", "hello", "a \u202e b"]).map(said),
    IDS.map(call),
    IDS.map(result),
    st.just(THINKING),
    st.sampled_from(
        ["", "{", "[]", '{"type":1}', '{"type":"text"}', '{"type":"tool_result","content":[{"type":"text"}]}']
    ),
)
MESSAGES = st.lists(
    st.builds(
        Message,
        st.sampled_from(["user", "assistant", "assistant", "user", "system"]),
        st.lists(BLOCKS, max_size=5).map(tuple),
        st.integers(1, 99),
    ),
    max_size=8,
).map(tuple)


@settings(max_examples=400, deadline=None)
@given(MESSAGES)
def test_whatever_stands_there_the_result_is_valid_and_repairing_it_again_changes_nothing(
    messages: tuple[Message, ...],
) -> None:
    mended, repairs = repair(messages)
    assert breaches(mended) == []
    again, more = repair(mended)
    assert more == ()
    assert again is mended
    assert (mended is messages) == (repairs == ())


@settings(max_examples=400, deadline=None)
@given(MESSAGES)
def test_the_quick_look_and_the_repair_agree(messages: tuple[Message, ...]) -> None:
    merged = assembled.merge(Piece(m.last_id, m.role, m.blocks) for m in messages if m.blocks)
    _, repairs = repair(merged)
    assert grown(Known(), [Piece(m.last_id, m.role, m.blocks) for m in merged]) == (repairs == ())


@settings(max_examples=200, deadline=None)
@given(MESSAGES, MESSAGES)
def test_what_was_repaired_stays_the_same_as_the_transcript_grows(
    before: tuple[Message, ...], after: tuple[Message, ...]
) -> None:
    short, _ = repair(before)
    long, _ = repair((*before, *after))
    # The last message may still grow (a neighbour of its role, an answer that came); those before it may not change.
    settled = max(len(short) - 2, 0)
    assert [m.blocks for m in long[:settled]] == [m.blocks for m in short[:settled]]


def request_of(*messages: Message) -> assembled.Request:
    floor = assembled.begin("", "", stable_proved=False, with_reasoning=True, newest=0)
    return assembled.append(floor, [Piece(m.last_id, m.role, m.blocks) for m in messages], messages[-1].last_id)


def test_mending_looks_only_at_what_is_new() -> None:
    request = request_of(*HEALTHY)
    mended, known, repairs = mend(request)
    assert mended is request
    assert repairs == ()
    longer = assembled.append(request, [Piece(7, "assistant", (call("c"),)), Piece(8, "user", (result("c"),))], 8)
    again, grew, _ = mend(longer, known)
    assert again is longer
    assert grew is known
    assert grew.count == len(HEALTHY) + 2


def test_mending_does_not_trust_what_it_knew_of_another_projection() -> None:
    _, known, _ = mend(request_of(*HEALTHY))
    broken = request_of(*HEALTHY[:2], *HEALTHY[3:])
    mended, _, repairs = mend(broken, known)
    assert [one.kind for one in repairs] == [RepairKind.MISSING_RESULT] * 2
    assert breaches(mended.messages) == []


def test_a_mended_request_carries_the_repaired_messages_under_the_same_floor() -> None:
    request = request_of(user(1, said("x")), assistant(2, call("a")))
    mended, _, repairs = mend(request)
    assert repairs == (Repair(RepairKind.MISSING_RESULT, 2, "a"),)
    assert shape(mended.messages)[-1] == ("user", ["tool_result:a"])
    assert mended.system_text == request.system_text

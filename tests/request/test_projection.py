"""From rows to the wire's messages: merging, edits, reasoning, the sidecar, the scaffold."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shared.request import blocks, digest
from shared.request.projection import (
    EditRow,
    Message,
    MessageRow,
    Prefix,
    Request,
    extend,
    project,
    renumbered,
    stable_is_proved,
    with_messages,
    with_tail,
)
from tests.request.made import PREFIX, answer, calls, conversation, result, row, thinking, user


def shown(request: Request) -> list[tuple[str, ...]]:
    """Role and, of each block, its text or its kind."""
    return [(m.role, *(blocks.text_of(b) or blocks.kind(b) for b in m.blocks)) for m in request.messages]


def test_neighbouring_rows_of_one_role_go_out_as_one_message() -> None:
    request = project(PREFIX, conversation())
    assert shown(request) == [
        ("user", "What is in a.txt?"),
        ("assistant", "thinking", "I look.", "tool_use", "tool_use"),
        ("user", "forty-two", "forty-two"),
        ("assistant", "thinking", "tool_use"),
        ("user", "forty-two"),
        ("assistant", "Forty-two."),
        ("user", "And in b.txt?"),
    ]
    assert [message.last_id for message in request.messages] == [1, 2, 4, 5, 6, 7, 8]


def test_the_order_is_that_of_the_ids_whatever_order_the_rows_come_in() -> None:
    assert project(PREFIX, reversed(conversation())) == project(PREFIX, conversation())


def test_the_sidecar_goes_out_in_place_of_what_a_person_reads() -> None:
    sent = blocks.join([blocks.append_text(blocks.tool_result("c1", "forty-two"), "70 % of the steps are used")])
    request = project(PREFIX, [user(1, "a"), calls(2, "c1"), row(3, "user", blocks.tool_result("c1", "x"), sent=sent)])
    assert request.messages[-1].blocks == blocks.split(sent)


def test_a_row_without_blocks_leaves_nothing_and_its_neighbours_merge() -> None:
    request = project(PREFIX, [user(1, "a"), row(2, "assistant"), user(3, "b")])
    assert request.messages == (Message("user", (blocks.text("a"), blocks.text("b")), 3),)


def test_an_answer_that_is_nothing_but_reasoning_is_dropped_where_reasoning_is_left_out() -> None:
    only = row(2, "assistant", reasoning=blocks.reasoning([(0, thinking("s"))]))
    assert len(project(PREFIX, [user(1, "a"), only, user(3, "b")]).messages) == 3
    assert len(project(PREFIX, [user(1, "a"), only, user(3, "b")], without_reasoning=True).messages) == 1


def test_the_last_call_goes_without_reasoning_and_without_tools() -> None:
    request = project(PREFIX, conversation(), without_reasoning=True, without_tools=True)
    assert (request.tools_text, request.tools) == ("", ())
    assert all(not blocks.is_reasoning(block) for piece in request.pieces for block in piece.blocks)


@pytest.mark.parametrize(
    ("text", "length", "expected"),
    [
        ("SCAFFOLD tail", 9, ["SCAFFOLD ", "tail"]),
        ("Gerüst→Ende", 7, ["Gerüst→", "Ende"]),
        ("whole", 0, ["whole"]),
        ("whole", 5, ["whole"]),
        ("whole", 99, ["whole"]),
        ("whole", -1, ["whole"]),
        ("tail is blank \n", 13, ["tail is blank \n"]),
        ("  \nscaffold is blank", 3, ["  \nscaffold is blank"]),
    ],
)
def test_a_scaffold_is_split_from_its_tail_at_the_stored_length(text: str, length: int, expected: list[str]) -> None:
    request = project(PREFIX, [user(1, text, scaffold=length)])
    assert [blocks.text_of(block) for block in request.messages[0].blocks] == expected


def test_the_first_text_is_the_one_that_is_split() -> None:
    image = '{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}}'
    request = project(PREFIX, [row(1, "user", image, blocks.text("ab"), blocks.text("cd"), scaffold=1)])
    assert request.messages[0].blocks == (image, *(blocks.text(part) for part in ("a", "b", "cd")))


def test_a_summary_stands_where_its_range_began() -> None:
    request = project(PREFIX, conversation(), [EditRow(9, "summary", 2, 6, text="They looked.")])
    assert shown(request) == [
        ("user", "What is in a.txt?", "They looked."),
        ("assistant", "Forty-two."),
        ("user", "And in b.txt?"),
    ]


def test_a_summary_stands_in_its_place_when_the_rows_it_covers_were_not_loaded() -> None:
    edits = [EditRow(9, "summary", 2, 6, text="They looked.")]
    few = [one for one in conversation() if not 2 <= one.id <= 6]
    assert project(PREFIX, few, edits).messages == project(PREFIX, conversation(), edits).messages


def test_a_summary_of_everything_is_all_there_is() -> None:
    request = project(PREFIX, conversation(), [EditRow(9, "summary", 1, 8, text="All of it.")])
    assert shown(request) == [("user", "All of it.")]
    assert shown(project(PREFIX, [], [EditRow(9, "summary", 1, 8, text="All of it.")])) == [("user", "All of it.")]


def test_a_stub_replaces_one_block_and_reasoning_behind_it_is_left_out() -> None:
    request = project(PREFIX, conversation(), [EditRow(9, "stub", 3, block=0, text="[4 MB, artifact a1]")])
    assert shown(request)[1:4] == [
        ("assistant", "thinking", "I look.", "tool_use", "tool_use"),
        ("user", "[4 MB, artifact a1]", "forty-two"),
        ("assistant", "tool_use"),
    ]


def test_a_stub_counts_blocks_in_the_stored_content_not_on_the_wire() -> None:
    request = project(PREFIX, conversation(), [EditRow(9, "stub", 2, block=0, text="[said]")])
    assert shown(request)[1] == ("assistant", "[said]", "tool_use", "tool_use")


def test_a_stubbed_scaffold_is_not_split() -> None:
    edits = [EditRow(9, "stub", 1, block=0, text="[a long scaffold]")]
    assert shown(project(PREFIX, [user(1, "SCAFFOLD tail", scaffold=9)], edits)) == [("user", "[a long scaffold]")]


def test_reasoning_made_after_the_edit_is_kept() -> None:
    rows = [*conversation(), calls(10, "c9", signature="s10"), result(11, "c9")]
    request = project(PREFIX, rows, [EditRow(9, "summary", 2, 6, text="They looked.")])
    assert blocks.kind(request.pieces[-2].blocks[0]) == "thinking"


def test_a_rewind_takes_its_range_out_and_a_restore_brings_it_back() -> None:
    gone = [EditRow(9, "rewind", 2, 8)]
    assert shown(project(PREFIX, conversation(), gone)) == [("user", "What is in a.txt?")]
    back = project(PREFIX, conversation(), [*gone, EditRow(10, "restore", 9)])
    assert [p.id for p in back.pieces] == list(range(1, 9))


def test_a_prefix_that_is_not_in_force_is_refused() -> None:
    with pytest.raises(ValueError, match="prefix p2 is in force"):
        project(PREFIX, conversation(), [EditRow(9, "prefix", prefix="p2")])
    newer = replace(PREFIX, digest="p2")
    request = project(newer, conversation(), [EditRow(9, "prefix", prefix="p2")])
    assert (
        sum(blocks.is_reasoning(b) for p in request.pieces for b in p.blocks) == 2
    )  # the first prefix changes no past


def test_new_rows_extend_a_request_to_what_all_rows_project_to() -> None:
    rows = conversation()
    for cut in range(len(rows) + 1):
        grown, whole = extend(project(PREFIX, rows[:cut]), rows[cut:]), project(PREFIX, rows)
        assert replace(grown, base=None, weight=whole.weight) == whole
        assert grown.weight == pytest.approx(whole.weight)


def test_a_row_that_is_not_newer_than_all_that_is_known_is_refused() -> None:
    request = project(PREFIX, conversation(), [EditRow(12, "stub", 3, block=0, text="x")])
    for late in (answer(8, "again"), answer(12, "as old as the edit")):
        with pytest.raises(ValueError, match="project again"):
            extend(request, [late])
    assert extend(request, []) is request


LATER = 2**61


def as_drafted(rows: list[MessageRow]) -> list[MessageRow]:
    return [replace(row, id=LATER + at) for at, row in enumerate(rows)]


def test_rows_that_are_as_they_were_drafted_make_what_extending_by_them_makes() -> None:
    rows = conversation()
    for cut in range(len(rows) + 1):
        base, new = project(PREFIX, rows[:cut]), rows[cut:]
        grown = extend(base, as_drafted(new))
        assert renumbered(base, grown, as_drafted(new), new) == extend(base, new)


def test_a_row_without_blocks_leaves_nothing_behind_under_its_own_id_either() -> None:
    base, new = project(PREFIX, [user(1, "a")]), [row(2, "assistant", "[]"), user(3, "b")]
    drafted = as_drafted(new)
    assert renumbered(base, extend(base, drafted), drafted, new) == extend(base, new)


@pytest.mark.parametrize(
    "written",
    [
        [user(5, "b"), user(6, "another")],
        [user(5, "b")],
        [user(5, "b"), user(6, "c"), user(7, "more")],
        [user(6, "b"), user(5, "c")],
        [user(1, "b"), user(6, "c")],
        [user(5, "b"), replace(user(6, "c"), sent="[]")],
        [user(5, "b"), replace(user(6, "c"), role="assistant")],
    ],
    ids=["another text", "one less", "one more", "another order", "older than the base", "a sidecar", "another role"],
)
def test_rows_that_are_not_as_they_were_drafted_must_be_projected(written: list[MessageRow]) -> None:
    base, drafted = project(PREFIX, [user(1, "a")]), as_drafted([user(2, "b"), user(3, "c")])
    assert renumbered(base, extend(base, drafted), drafted, written) is None


def test_a_role_that_is_not_of_the_wire_is_refused() -> None:
    with pytest.raises(ValueError, match="role 'system'"):
        project(PREFIX, [row(1, "system", blocks.text("x"))])


@pytest.mark.parametrize("content", ["", "text", '{"type":"text"}', '[{"type":"text"'])
def test_content_that_is_not_an_array_of_blocks_is_refused(content: str) -> None:
    with pytest.raises(ValueError):
        project(PREFIX, [MessageRow(1, "t", 1, 1, "person", "user", content)])


@pytest.mark.parametrize(
    ("prefix", "proved"),
    [
        (PREFIX, True),
        (replace(PREFIX, stable_length=PREFIX.stable_length + 1), False),
        (replace(PREFIX, stable_length=PREFIX.stable_length - 1), False),
        (replace(PREFIX, stable_length=0), False),
        (replace(PREFIX, system_text="[]"), False),
        (replace(PREFIX, system_text=""), False),
        (replace(PREFIX, system_text=blocks.join([blocks.text("\U0001f319ü")]), stable_length=2), True),
    ],
)
def test_the_stable_tier_is_proved_to_the_character(prefix: Prefix, proved: bool) -> None:
    assert stable_is_proved(prefix) is proved
    assert project(prefix, []).stable_proved is proved


def test_an_instruction_at_the_end_is_no_row_and_joins_the_message_before_it() -> None:
    request = with_tail(project(PREFIX, conversation()), [blocks.text("Sum up.")])
    assert shown(request)[-1] == ("user", "And in b.txt?", "Sum up.")
    assert extend(project(PREFIX, conversation()), [answer(9, "ok")]).newest == 9


def test_repaired_messages_keep_the_floor() -> None:
    request = project(PREFIX, conversation())
    assert with_messages(request, request.messages).chain == request.chain
    fewer = with_messages(request, request.messages[:1])
    assert (fewer.system_text, fewer.tools_text, fewer.messages) == (
        request.system_text,
        request.tools_text,
        request.messages[:1],
    )
    assert digest.first_break(fewer, request) is None

"""The rolling digest: what it is over, what moves it, what does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shared.request import blocks, digest
from shared.request.projection import EditRow, extend, project
from tests.request.made import PREFIX, answer, conversation, row, user


def test_a_request_extends_another_exactly_when_the_digest_at_its_count_agrees() -> None:
    rows = conversation()
    for cut in range(len(rows)):
        before, after = project(PREFIX, rows[:cut]), project(PREFIX, rows)
        assert digest.at(after, before.chain.count) == digest.of(before).digest
        assert digest.first_break(before, after) is None


def test_the_count_is_tools_and_every_system_and_message_block() -> None:
    assert digest.of(project(PREFIX, [])).count == 4
    assert digest.of(project(PREFIX, conversation())).count == 4 + 13 - 1


def test_at_more_units_than_there_are_nothing_agrees() -> None:
    request = project(PREFIX, conversation())
    assert digest.at(request, request.chain.count + 1) == ""
    assert digest.at(request, request.chain.count) == request.chain.digest


def test_whether_two_rows_of_one_role_were_merged_does_not_matter() -> None:
    apart = project(PREFIX, [user(1, "a"), user(2, "b")])
    one = project(PREFIX, [row(1, "user", blocks.text("a"), blocks.text("b"))])
    assert digest.of(apart) == digest.of(one)


def test_an_extension_leaves_the_digest_that_it_started_from_as_it_was() -> None:
    request = project(PREFIX, conversation())
    before = request.chain
    left, right = extend(request, [answer(9, "x")]), extend(request, [answer(9, "y")])
    assert request.chain == before
    assert left.chain != right.chain
    assert left.base == right.base == before


@pytest.mark.parametrize(
    ("other", "at"),
    [
        (replace(PREFIX, tools_text=PREFIX.tools_text.replace("Reads", "reads")), 0),
        (replace(PREFIX, system_text=PREFIX.system_text.replace("11-30", "11-31")), 3),
    ],
)
def test_a_changed_byte_in_the_floor_is_seen_and_found(other: object, at: int) -> None:
    assert isinstance(other, type(PREFIX))
    before, after = project(PREFIX, conversation()), project(other, conversation())
    assert digest.at(after, before.chain.count) != before.chain.digest
    assert digest.first_break(before, after) == at


def test_a_changed_block_is_seen_and_found() -> None:
    before = project(PREFIX, conversation())
    after = project(PREFIX, conversation(), [EditRow(9, "stub", 4, block=0, text="x")])
    assert digest.at(after, before.chain.count) != before.chain.digest
    assert digest.first_break(before, after) == 4 + 1 + 4 + 1


def test_a_shorter_request_breaks_where_it_ends() -> None:
    assert digest.first_break(project(PREFIX, conversation()), project(PREFIX, conversation()[:1])) == 5


def test_moving_a_border_between_blocks_or_roles_changes_the_digest() -> None:
    texts = [
        project(PREFIX, [row(1, "user", blocks.text("ab"))]),
        project(PREFIX, [row(1, "user", blocks.text("a"), blocks.text("b"))]),
        project(PREFIX, [user(1, "a"), answer(2, "b")]),
        project(PREFIX, [user(1, "a"), user(2, "b"), user(3, "c")]),
    ]
    assert len({request.chain.digest for request in texts}) == len(texts)
    rolling = digest.start()
    assert rolling.extend("user", [b"ab"]).hexdigest != rolling.extend("user", [b"a", b"b"]).hexdigest
    assert rolling.extend("user", [b"a"]).hexdigest != rolling.extend("assistant", [b"a"]).hexdigest
    assert rolling.extend("user", [b"a", b"b"]).hexdigest != rolling.extend("user", [b"auserb"]).hexdigest
    assert rolling.copy().extend("user", [b"a"]).count == 1
    assert rolling.count == 0

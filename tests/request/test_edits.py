"""What each edit, and each pair of edits, makes of ten messages."""

from __future__ import annotations

import pytest

from shared.request.edits import EditRow, Past, Standing, apply


def view(past: Past, last: int = 10) -> str:
    """One letter a message: L live, c covered, r rewound."""
    letters = {Standing.LIVE: "L", Standing.COVERED: "c", Standing.REWOUND: "r"}
    return "".join(letters[past.standing(number)] for number in range(1, last + 1))


def summary(number: int, first: int, last: int, *kept: int) -> EditRow:
    return EditRow(number, "summary", first, last, text=f"S{number}", kept=list(kept) or None)


def rewind(number: int, first: int, last: int) -> EditRow:
    return EditRow(number, "rewind", first, last)


def restore(number: int, undone: int) -> EditRow:
    return EditRow(number, "restore", undone)


def prefix(number: int, digest: str) -> EditRow:
    return EditRow(number, "prefix", prefix=digest)


@pytest.mark.parametrize(
    ("edits", "expected", "standing"),
    [
        ([], "LLLLLLLLLL", []),
        ([summary(11, 3, 6)], "LLccccLLLL", [11]),
        ([rewind(11, 8, 10)], "LLLLLLLrrr", []),
        ([rewind(11, 8, 10), restore(12, 11)], "LLLLLLLLLL", []),
        ([rewind(11, 8, 10), restore(12, 11), restore(13, 11)], "LLLLLLLLLL", []),
        ([rewind(11, 8, 10), restore(12, 11), rewind(13, 9, 10)], "LLLLLLLLrr", []),
        # of two rewinds that overlap, undoing one leaves what the other took back
        ([rewind(11, 8, 10), rewind(12, 4, 10), restore(13, 12)], "LLLLLLLrrr", []),
        ([rewind(11, 8, 10), rewind(12, 4, 10), restore(13, 11)], "LLLrrrrrrr", []),
        ([restore(11, 9)], "LLLLLLLLLL", []),
        # a rewind that reaches into a summary voids it: what was before the cut stands again as it was
        ([summary(11, 3, 6), rewind(12, 5, 10)], "LLLLrrrrrr", []),
        ([summary(11, 3, 6), rewind(12, 6, 10)], "LLLLLrrrrr", []),
        # one that ends before the cut had been written by someone who had read behind it: void too, if it is younger
        ([summary(11, 3, 6), rewind(12, 7, 10)], "LLLLLLrrrr", []),
        ([summary(7, 3, 6), rewind(12, 8, 10)], "LLccccLrrr", [7]),
        ([summary(11, 3, 6), rewind(12, 1, 10)], "rrrrrrrrrr", []),
        ([summary(11, 3, 6), rewind(12, 5, 10), restore(13, 12)], "LLccccLLLL", [11]),
        ([summary(7, 3, 6), rewind(12, 5, 10), rewind(13, 8, 10), restore(14, 12)], "LLccccLrrr", [7]),
        # a summary made after a rewind is not touched by it, and what was rewound stays so inside its range
        ([rewind(11, 5, 6), summary(12, 3, 8)], "LLccrrccLL", [12]),
        # and it says nothing of what comes back later, so it is void then; the one that it had swallowed stands again
        ([rewind(11, 5, 6), summary(12, 3, 8), restore(13, 11)], "LLLLLLLLLL", []),
        ([summary(9, 3, 4), rewind(11, 5, 6), summary(12, 3, 8), restore(13, 11)], "LLccLLLLLL", [9]),
        ([rewind(11, 5, 6), restore(12, 11), summary(13, 3, 8)], "LLccccccLL", [13]),
        ([rewind(11, 9, 10), summary(12, 3, 8), restore(13, 11)], "LLccccccLL", [12]),
        # a later summary swallows the one that lies inside it; side by side or overlapping, both are shown
        ([summary(11, 3, 5), summary(12, 3, 8)], "LLccccccLL", [12]),
        ([summary(11, 3, 5), summary(12, 7, 8)], "LLcccLccLL", [11, 12]),
        ([summary(11, 3, 6), summary(12, 5, 8)], "LLccccccLL", [11, 12]),
        ([summary(6, 3, 5), summary(12, 3, 8), rewind(13, 7, 10)], "LLcccLrrrr", [6]),
        # what a summary keeps stands as it is, until a later one that does not keep it takes it in
        ([summary(11, 3, 6, 5)], "LLccLcLLLL", [11]),
        ([summary(11, 3, 6, 3, 6)], "LLLccLLLLL", [11]),
        ([summary(11, 3, 6, 5), summary(12, 3, 8, 7)], "LLccccLcLL", [12]),
        ([summary(11, 3, 6, 5), summary(12, 3, 8, 5)], "LLccLcccLL", [12]),
        ([summary(11, 3, 6, 5), rewind(12, 6, 10)], "LLLLLrrrrr", []),
    ],
)
def test_each_history_of_edits_leaves_the_messages_standing_so(
    edits: list[EditRow], expected: str, standing: list[int]
) -> None:
    past = apply(reversed(edits))  # the order is that of the ids, whatever order the rows come in
    assert view(past) == expected
    assert [one.id for one in past.summaries] == standing
    ranges = past.live(10)
    shown = "".join("L" if any(a <= n <= b for a, b in ranges) else "-" for n in range(1, 11))
    assert shown == expected.replace("c", "-").replace("r", "-"), "what is read is what stands"


@pytest.mark.parametrize(
    ("edits", "kept"),
    [
        ([], [1, 4, 6, 14]),
        ([prefix(2, "a")], [1, 4, 6, 14]),  # the first prefix changes no past
        ([prefix(2, "a"), prefix(5, "b")], [6, 14]),
        ([EditRow(11, "stub", 5, block=0, text="x")], [1, 4, 14]),
        ([summary(11, 3, 5)], [1, 14]),
        ([rewind(11, 6, 10)], [1, 4, 14]),
        ([rewind(11, 6, 10), restore(12, 11)], [1, 4, 14]),
        ([restore(11, 6)], [1, 4, 6, 14]),
        ([summary(9, 3, 5), rewind(13, 5, 12)], [1, 14]),
        ([EditRow(5, "stub", 1, block=0, text="x"), summary(11, 6, 7)], [14]),
        ([EditRow(15, "stub", 6, block=0, text="x")], [1, 4]),
    ],
)
def test_reasoning_behind_a_later_change_is_bound_to_what_is_gone(edits: list[EditRow], kept: list[int]) -> None:
    past = apply(edits)
    assert [number for number in (1, 4, 6, 14) if past.keeps_reasoning(number)] == kept


def test_the_newest_prefix_edit_is_in_force_and_the_newest_stub_of_a_block_counts() -> None:
    past = apply(
        [
            prefix(1, "a"),
            EditRow(11, "stub", 5, block=0, text="first"),
            EditRow(12, "stub", 5, block=0, text="second"),
            prefix(13, "b"),
        ]
    )
    assert (past.prefix, past.stubs, past.newest) == ("b", {(5, 0): "second"}, 13)


@pytest.mark.parametrize(
    "edit", [EditRow(1, "summary", 3), EditRow(1, "rewind", None, 4), EditRow(1, "stub", 3), EditRow(1, "nothing")]
)
def test_an_edit_that_does_not_say_what_it_edits_is_refused(edit: EditRow) -> None:
    with pytest.raises(ValueError):
        apply([edit])

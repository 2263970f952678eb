"""What was written once for another wire is kept, within a bound of characters that counts all that stays for it."""

from __future__ import annotations

from shared.request.kept import ENTRY_CHARS, STRING_CHARS, Items, Kept, Key


class Writer:
    def __init__(self, items: Items) -> None:
        self.items = items
        self.asked = 0

    def __call__(self) -> Items:
        self.asked += 1
        return self.items


def key(number: int, text: str = "") -> Key:
    return ("assistant", (f"{number}", text), "a dialect")


def written(kept: Kept, keys: list[Key], items: Items) -> int:
    """How many of these were written to be had."""
    writer = Writer(items)
    assert [kept.get(one, writer) for one in keys] == [items] * len(keys)
    return writer.asked


def test_what_fits_is_written_once() -> None:
    kept = Kept(10 * (ENTRY_CHARS + 3 * STRING_CHARS + 4))
    keys = [key(number) for number in range(10)]
    assert [written(kept, keys, ("abc",)) for _ in range(3)] == [10, 0, 0]


def test_what_is_written_counts() -> None:
    kept = Kept(10 * (ENTRY_CHARS + 1_000))
    assert [written(kept, [key(number) for number in range(20)], ("a" * 1_000,)) for _ in range(2)] == [20, 20]


def test_a_message_of_which_nothing_is_written_counts_by_its_blocks() -> None:
    kept = Kept(10 * (ENTRY_CHARS + 1_000))
    assert [written(kept, [key(number, "a" * 1_000) for number in range(20)], ()) for _ in range(2)] == [20, 20]


def test_short_messages_count_by_what_an_entry_and_each_string_take() -> None:
    kept = Kept(10 * (ENTRY_CHARS + 3 * STRING_CHARS + 4))
    assert [written(kept, [key(number) for number in range(11)], ("abc",)) for _ in range(2)] == [11, 11]

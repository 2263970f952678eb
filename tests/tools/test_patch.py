"""Changing one place of a file: exact, then forgiving what is no difference of content; never an unclear place."""

from __future__ import annotations

import os
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.boottime import boottime
from tests.tools.conftest import Bench
from workers.tools.patching import NotPatched, Patched, patch

SPACES, INDENT = "spaces at the ends of lines", "the indentation"
APART = "its lines are there, but indented otherwise to each other"
MANY = "take more lines around it into old and new, or everywhere: true"
SOURCE = "def one():\n    return 1\n\n\ndef two():\n    if True:\n        return 2\n    return 3\n"


@pytest.mark.parametrize(
    ("text", "old", "new", "expected", "forgiven"),
    [
        pytest.param("a b c", "b", "x", "a x c", None, id="inside-a-line"),
        pytest.param("a\nb\nc\n", "b\n", "", "a\nc\n", None, id="a-line-taken-out"),
        pytest.param("a\nb\n", "a\nb\n", "x\n", "x\n", None, id="the-whole"),
        pytest.param("a  \nb\t\nc\n", "a\nb\n", "x\n", "x\nc\n", SPACES, id="ends-of-lines"),
        pytest.param("a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\n", "x\r\ny\r\nc\r\n", SPACES, id="crlf-kept"),
        pytest.param("say \u201chi\u201d\nb", "say \"hi\"", "no", "no\nb", "quotes, dashes and spaces", id="quotes"),
        pytest.param("a\u00a0\u2013 b", "a - b", "c", "c", "quotes, dashes and spaces", id="dashes-and-hard-spaces"),
        pytest.param(
            SOURCE, "if True:\n    return 2\n", "if False:\n    return 4\nelse:\n    return 5\n",
            SOURCE.replace("True:\n        return 2", "False:\n        return 4\n    else:\n        return 5"),
            INDENT, id="a-block-moved-in",
        ),
        pytest.param("\tif a:\n\t\tb\n", "  if a:\n  \tb\n", "  c\n", "\tc\n", INDENT, id="tabs"),
        pytest.param("  a\n\n  b\n", "a\n\nb", "c\n\nd", "  c\n\n  d\n", INDENT, id="blank-lines-stay-blank"),
    ],
)  # fmt: skip
def test_a_place_is_found_and_the_rest_stays(
    text: str, old: str, new: str, expected: str, forgiven: str | None
) -> None:
    came = patch(text, old, new)
    assert isinstance(came, Patched), came
    assert (came.text, came.forgiven) == (expected, forgiven)


@pytest.mark.parametrize(
    ("text", "old", "new", "why"),
    [
        ("a", "a", "a", "old and new are the same: there is nothing to change"),
        ("a\nb\na\n", "a", "x", f"old stands in 2 places (lines 1, 3): {MANY}"),
        (" a\n  a\n", "\ta", "x", f"old stands in 2 places (lines 1, 2): {MANY}"),
        ("a\nb\nc\n", "a\nx\nc\n", "", "old does not stand there: line 2 is 'b', where old has 'x'"),
        ("a\nb\n", "a\nb\nc\n", "", "old does not stand there: the file ends at line 2, and old goes on"),
        ("a\n", "zzz", "", "old does not stand there: read the file again, and copy the lines as they are"),
        ("a\n", "\n\n\n", "", "old is blank: name the lines that are to change"),
        # Its lines stand in another relation to each other: in Python that is another program.
        ("if a:\n    b\n    c\n", "if a:\n    b\nc\n", "x\n", f"old does not stand there: {APART}"),
    ],
)  # fmt: skip
def test_an_unclear_place_is_not_changed_and_what_would_help_is_said(text: str, old: str, new: str, why: str) -> None:
    assert patch(text, old, new) == NotPatched(why)


def test_everywhere_changes_each_place_and_forgives_nothing() -> None:
    came = patch("a b a\na\n", "a", "xx", everywhere=True)
    assert isinstance(came, Patched)
    assert (came.text, came.places) == ("xx b xx\nxx\n", 3)
    assert isinstance(patch("a \nb\n", "a\nb", "x", everywhere=True), NotPatched)


def test_the_diff_shows_each_change_with_what_stands_around_it() -> None:
    text = "".join(f"line {at}\n" for at in range(1, 21))
    came = patch(text, "line 10\n", "ten\nand a half\n")
    assert isinstance(came, Patched)
    assert came.diff.split("\n") == [
        "@@ -7,8 +7,9 @@", " line 7", " line 8", " line 9", "-line 10", "+ten", "+and a half", " line 11", " line 12",
        " line 13", " line 14",
    ]  # fmt: skip


_LINES = st.lists(st.text("ab \t\u2019'", max_size=4), max_size=6)


@given(_LINES, st.data(), st.text("xy \n", max_size=6))
def test_whatever_is_replaced_the_lines_around_it_stay(lines: list[str], data: st.DataObject, new: str) -> None:
    text = "\n".join(lines)
    begin = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(begin, len(text)))
    old = text[begin:end]
    if not old:
        return
    came = patch(text, old, new)
    if isinstance(came, Patched):
        assert came.forgiven is None
        assert came.text == text[: text.index(old)] + new + text[text.index(old) + len(old) :]
    else:
        assert old == new or text.count(old) > 1


def test_a_file_is_changed_and_the_answer_is_a_diff(bench: Bench) -> None:
    path = bench.workspace / "a.py"
    path.write_text(SOURCE)
    path.chmod(0o755)
    told = bench.text("patch", path="a.py", old="    return 1", new="    return 11")
    assert told == (
        "changed: a.py (81 bytes)\n@@ -1,5 +1,5 @@\n def one():\n-    return 1\n+    return 11\n \n \n def two():"
    )
    assert path.read_text() == SOURCE.replace("return 1", "return 11")
    assert path.stat().st_mode & 0o777 == 0o755
    told = bench.text("patch", path="a.py", old="if True:\n    return 2\n", new="pass\n")
    assert told.startswith("changed: a.py (60 bytes); old differed from the file in the indentation\n@@ ")


def test_what_is_no_text_of_ours_is_not_touched(bench: Bench) -> None:
    (bench.workspace / "latin").write_bytes(b"caf\xe9\n")
    (bench.workspace / "link").symlink_to(bench.outside / "f.txt")
    os.mkfifo(bench.workspace / "pipe")
    with (bench.workspace / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    (bench.attached / "a").write_text("x")
    for path, why in (
        ("latin", "is not text in UTF-8"), ("link", "links are not followed"), ("pipe", "is a pipe, not a file"),
        ("sparse", "is 1,099,511,627,776 bytes"), ("missing", "does not exist"), ("input/a", "input/ is read-only"),
        ("../outside/f.txt", "may not contain .."), (".nightshift/x", "not open to tools"),
    ):  # fmt: skip
        assert why in bench.error("patch", path=path, old="x", new="y"), path
    assert bench.outside_is_untouched()


def test_what_another_writes_between_the_read_and_the_write_is_not_lost(bench: Bench) -> None:
    path = bench.workspace / "a"
    path.write_text("one\n")
    asked = threading.Event()

    def lease() -> float:
        """Asked right before the file is replaced."""
        if not asked.is_set():
            asked.set()
            path.write_text("one\nand what another wrote\n")
        return boottime() + 60

    bench.act_until = lease
    assert "changed by something else meanwhile" in bench.error("patch", path="a", old="one", new="two")
    assert path.read_text() == "one\nand what another wrote\n"
    assert [entry.name for entry in bench.workspace.iterdir()] == ["a"]


def test_a_worker_whose_lease_is_over_changes_nothing(bench: Bench) -> None:
    (bench.workspace / "a").write_text("one\n")
    bench.act_until = lambda: 0.0
    assert "cut off" in bench.error("patch", path="a", old="one", new="two")
    assert (bench.workspace / "a").read_text() == "one\n"

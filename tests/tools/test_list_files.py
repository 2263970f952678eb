"""What `list_files` shows, in which form, and what it leaves out."""

from __future__ import annotations

import os
import re
import time

from tests.tools.conftest import Bench

_WHEN = 1_796_000_000
_SHOWN = "2026-11-30T00:53:20Z"


def test_entries_are_lines_of_path_size_and_time_sorted(bench: Bench) -> None:
    for path, size in (("b.txt", 3), ("a/c.txt", 0), ("a/deep/d.txt", 5)):
        file = bench.workspace / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"x" * size)
        os.utime(file, (_WHEN, _WHEN))
    os.utime(bench.workspace / "a", (_WHEN, _WHEN))
    os.utime(bench.workspace / "a/deep", (_WHEN, _WHEN))
    assert bench.alone().text("list_files").splitlines() == [
        f"a/\t-\t{_SHOWN}",
        f"a/c.txt\t0\t{_SHOWN}",
        f"a/deep/\t-\t{_SHOWN}",
        f"b.txt\t3\t{_SHOWN}",
        "[1 deeper folders not opened]",
    ]
    assert bench.alone().text("list_files", path="a", depth=2).splitlines() == [
        f"a/c.txt\t0\t{_SHOWN}",
        f"a/deep/\t-\t{_SHOWN}",
        f"a/deep/d.txt\t5\t{_SHOWN}",
    ]


def test_the_attached_folder_is_shown_under_input(bench: Bench) -> None:
    (bench.attached / "notes").mkdir()
    (bench.attached / "notes/n.txt").write_text("x")
    paths = [line.split("\t")[0] for line in bench.text("list_files", depth=3).splitlines()]
    assert paths == ["input/", "input/notes/", "input/notes/n.txt"]
    assert bench.text("list_files", path="input/notes").startswith("input/notes/n.txt\t1\t")


def test_an_empty_folder_says_so(bench: Bench) -> None:
    assert bench.alone().text("list_files") == "[empty folder]"


def test_folders_that_nobody_wrote_are_named_and_opened_only_when_asked_for(bench: Bench) -> None:
    (bench.attached / ".git").mkdir()
    (bench.attached / ".git/HEAD").write_text("ref")
    listed = bench.text("list_files", depth=5)
    assert "input/.git/" in listed
    assert "HEAD" not in listed
    assert listed.endswith("[not opened: .git/]")
    assert "input/.git/HEAD\t3\t" in bench.text("list_files", path="input/.git")


def test_when_not_all_fits_the_shallow_entries_stay_and_the_rest_is_counted(bench: Bench) -> None:
    for folder in range(4):
        (bench.workspace / f"{folder}").mkdir()
        for file in range(500):
            (bench.workspace / f"{folder}/{file:04}.txt").touch()
    (bench.workspace / "z-at-the-top.txt").touch()
    text = bench.alone().text("list_files", depth=2)
    assert "z-at-the-top.txt" in text
    assert len(text) <= 40_000
    left_out = re.search(r"\[([\d,]+) more entries left out; name a folder or lower depth\]$", text)
    assert left_out is not None
    assert len(text.splitlines()) - 1 + int(left_out.group(1).replace(",", "")) == 2005


def test_long_names_do_not_pass_the_cap(bench: Bench) -> None:
    for number in range(300):
        (bench.workspace / (f"{number:03}" + "n" * 240)).touch()
    text = bench.alone().text("list_files")
    assert len(text) <= 40_000
    assert "more entries left out" in text


def test_a_time_that_no_calendar_holds_is_a_dash(bench: Bench) -> None:
    (bench.workspace / "a").touch()
    os.utime(bench.workspace / "a", (1 << 40, 1 << 40))
    line = bench.alone().text("list_files")
    assert line in ("a\t0\t-", f"a\t0\t{time.strftime('%Y')}") or line.startswith("a\t0\t2446-")


def test_a_listing_ends_when_the_turn_is_cancelled(bench: Bench) -> None:
    for number in range(600):
        (bench.workspace / f"{number}").mkdir()
    asked = 0

    def cancelled() -> bool:
        nonlocal asked
        asked += 1
        return asked > 3

    bench.cancelled = cancelled
    assert bench.error("list_files", depth=5) == "cancelled before it had finished"
    assert asked < 10

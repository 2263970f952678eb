"""A folder that turns into a link and back while the tools run: nothing outside is read, nothing outside is written."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.tools.conftest import SECRET, Bench
from workers.tools import beneath

_SECONDS = 1.5


@contextmanager
def swapping(folder: Path, target: Path, *, rest: float = 0) -> Generator[None]:
    """While the block runs, `folder` is by turns itself (for `rest` seconds at least) and a link to `target`."""
    stop = threading.Event()
    aside = folder.with_name(folder.name + ".aside")

    def swap() -> None:
        while not stop.is_set():
            folder.rename(aside)
            with suppress(OSError):  # write_file may make the folder anew while it is not there
                folder.symlink_to(target)
                folder.unlink()
            _put_back(aside, folder)
            stop.wait(rest)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(10)


def _put_back(aside: Path, folder: Path) -> None:
    while aside.exists():
        try:
            aside.rename(folder)
        except OSError:
            shutil.rmtree(folder, ignore_errors=True)


def test_the_swap_does_lead_a_plain_open_outside(bench: Bench) -> None:
    """If this fails, the tests below prove nothing."""
    (bench.workspace / "a").mkdir()
    (bench.workspace / "a/f.txt").write_text("inside")
    seen: set[str] = set()
    until = time.monotonic() + 20
    with swapping(bench.workspace / "a", bench.outside):
        while SECRET not in seen and time.monotonic() < until:
            try:
                seen.add((bench.workspace / "a/f.txt").read_text())
            except OSError:
                continue
    assert SECRET in seen


def test_a_folder_swapped_for_a_link_while_it_is_read_shows_nothing_from_outside(bench: Bench) -> None:
    (bench.workspace / "a/deep").mkdir(parents=True)
    (bench.workspace / "a/f.txt").write_text("inside")
    (bench.workspace / "a/deep/f.txt").write_text("inside")
    reads: set[str] = set()
    with swapping(bench.workspace / "a", bench.outside):
        until = time.monotonic() + _SECONDS
        while time.monotonic() < until or ("inside" not in reads and time.monotonic() < until + 30):
            reads.add(bench.run("read_file", path="a/f.txt").text)
            reads.add(bench.run("read_file", path="a/deep/f.txt").text)
            listed = bench.run("list_files", path="a").text
            assert str(len(SECRET)) not in [line.split("\t")[1] for line in listed.splitlines() if "\t" in line]
    assert "inside" in reads
    assert not any(SECRET in text for text in reads)


def test_a_folder_swapped_for_a_link_while_it_is_searched_shows_nothing_from_outside(bench: Bench) -> None:
    for number in range(20):
        (bench.workspace / f"a/{number}").mkdir(parents=True)
        (bench.workspace / f"a/{number}/f.txt").write_text("inside")
    found: set[str] = set()
    with swapping(bench.workspace / "a", bench.outside, rest=0.001):
        until = time.monotonic() + _SECONDS
        while time.monotonic() < until or (
            not any("inside" in text for text in found) and time.monotonic() < until + 30
        ):
            found.add(bench.run("search_files", pattern=f"inside|{SECRET}", path="a").text)
    assert any("/f.txt:1: inside" in text for text in found)
    assert not any(SECRET in text for text in found)


def test_a_folder_swapped_for_a_link_while_it_is_written_to_puts_nothing_outside(bench: Bench) -> None:
    (bench.workspace / "a/deep").mkdir(parents=True)
    written = patched = 0
    with swapping(bench.workspace / "a", bench.outside):
        until = time.monotonic() + _SECONDS
        while time.monotonic() < until:
            for path in ("a/f.txt", "a/deep/f.txt", "a/new/f.txt"):
                written += not bench.run("write_file", path=path, content="overwritten").is_error
                patched += not bench.run("patch", path=path, old="over", new="over and over").is_error
                patched += not bench.run("patch", path=path, old=SECRET, new="overwritten").is_error
    assert written > 0
    assert patched > 0
    assert bench.outside_is_untouched()
    assert sorted(entry.name for entry in bench.outside.iterdir()) == ["deep", "f.txt"]
    assert [entry.name for entry in (bench.outside / "deep").iterdir()] == ["f.txt"]


@pytest.mark.parametrize("goal", ["link", "pipe", "folder"])
def test_a_file_swapped_between_the_look_and_the_open_shows_nothing_and_blocks_nobody(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, goal: str
) -> None:
    file = bench.workspace / "f.txt"
    file.write_text("inside")
    look = beneath._must_be_regular

    def swap_after_the_look(mode: int, shown: str) -> None:
        look(mode, shown)
        if file.is_file() and not file.is_symlink():
            file.unlink()
            match goal:
                case "link":
                    file.symlink_to(bench.outside / "f.txt")
                case "pipe":
                    os.mkfifo(file)
                case _:
                    file.mkdir()

    monkeypatch.setattr(beneath, "_must_be_regular", swap_after_the_look)
    assert f"f.txt is a {goal}" in bench.error("read_file", path="f.txt")

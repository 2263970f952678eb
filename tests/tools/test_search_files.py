"""What `search_files` finds, and that no pattern and no text can stop anybody else."""

from __future__ import annotations

import threading
import time

import pytest

from deploy.drill.rig import slack
from tests.tools.conftest import Bench


def test_matches_are_lines_of_path_number_and_text(bench: Bench) -> None:
    (bench.workspace / "a.md").write_text("one\n  two needle\nthree\nneedle")
    (bench.attached / "b").mkdir()
    (bench.attached / "b/c.txt").write_text("a Needle\r\nneedle\r\n")
    assert bench.text("search_files", pattern="needle").splitlines() == [
        "a.md:2: two needle",
        "a.md:4: needle",
        "input/b/c.txt:2: needle",
        "[3 matches in 2 of 2 files]",
    ]
    assert bench.text("search_files", pattern="(?i)^a needle$", path="input/b").splitlines() == [
        "input/b/c.txt:1: a Needle",
        "[1 matches in 1 of 1 files]",
    ]
    assert bench.text("search_files", pattern="needle", path="a.md").startswith("a.md:2: two needle\n")
    assert bench.text("search_files", pattern="nothing") == "[no match in 2 files]"


@pytest.mark.parametrize(
    ("glob", "files"),
    [
        ("*.md", ["a.md", "d/e.md", "d/f/g.md"]),
        ("d/*.md", ["d/e.md"]),
        ("d/**/*.md", ["d/e.md", "d/f/g.md"]),
        ("**/g.md", ["d/f/g.md"]),
        ("*.{txt,rst}", ["b.txt", "d/c.rst"]),
        ("?.txt", ["b.txt"]),
        ("a.m*", ["a.md"]),
        ("[ab].md", []),
    ],
)
def test_a_glob_chooses_the_files(bench: Bench, glob: str, files: list[str]) -> None:
    for path in ("a.md", "b.txt", "d/e.md", "d/f/g.md", "d/c.rst", "amd"):
        (bench.workspace / path).parent.mkdir(parents=True, exist_ok=True)
        (bench.workspace / path).write_text("x")
    found = bench.text("search_files", pattern="x", glob=glob).splitlines()[:-1]
    assert sorted(line.split(":")[0] for line in found) == files


def test_no_match_crosses_a_line_and_anchors_are_a_line_s(bench: Bench) -> None:
    (bench.workspace / "a").write_text("one\ntwo\n\nthree")
    assert bench.text("search_files", pattern=r"one\s+two") == "[no match in 1 files]"
    assert bench.text("search_files", pattern=r"e[^x]*t") == "[no match in 1 files]"
    assert bench.text("search_files", pattern=r"^t").splitlines()[:-1] == ["a:2: two", "a:4: three"]
    assert bench.text("search_files", pattern=r"\At").splitlines()[:-1] == ["a:2: two", "a:4: three"]
    assert bench.text("search_files", pattern=r"o\z").splitlines()[:-1] == ["a:2: two"]
    assert bench.text("search_files", pattern=r"^$").splitlines()[:-1] == ["a:3: "]
    assert bench.text("search_files", pattern=r"x*").splitlines()[-1] == "[4 matches in 1 of 1 files]"


def test_other_encodings_are_searched_as_text(bench: Bench) -> None:
    (bench.workspace / "latin.txt").write_bytes(b"na\xefve\n")
    (bench.workspace / "wide.txt").write_text("first\nnaïve\n", encoding="utf-16")
    assert bench.text("search_files", pattern="na.ve").splitlines()[:-1] == ["latin.txt:1: naïve", "wide.txt:2: naïve"]


@pytest.mark.parametrize(
    ("pattern", "advice"),
    [
        ("(?=a)b", "There is no look-around (RE2 syntax): match the text around it too, or search twice"),
        ("(?<!a)b", "There is no look-around (RE2 syntax): match the text around it too, or search twice"),
        (r"(a)\1", "There are no back-references (RE2 syntax): write the repeated text out"),
        ("a++", r"RE2 repeats at most 1000 times and has no possessive ++; put a \ before + * ? to mean itself"),
        ("a{1001}", r"RE2 repeats at most 1000 times and has no possessive ++; put a \ before + * ? to mean itself"),
        ("(a", r"RE2 syntax; put a \ before ( ) [ ] { } + * ? | to mean itself"),
        (
            r"a\Z",
            r"RE2 syntax: \z for the end, \d \w \s \b as usual; put a \ before . ( ) [ ] { } + * ? | to mean itself",
        ),
    ],
)
def test_a_pattern_that_is_refused_is_explained(bench: Bench, pattern: str, advice: str) -> None:
    message = bench.error("search_files", pattern=pattern)
    assert message.startswith("the pattern is refused: ")
    assert message.endswith(advice)


def test_an_empty_or_an_endless_pattern_is_refused(bench: Bench) -> None:
    assert bench.error("search_files", pattern="") == "the pattern is empty"
    assert "at most 2,000 are taken" in bench.error("search_files", pattern="a" * 2_001)
    assert "at most 2,000 are taken" in bench.error("search_files", pattern="a", glob="*" * 2_001)
    assert bench.text("search_files", pattern="a", glob="*a" * 900) == "[no match in 0 files]"


def test_what_does_not_fit_is_told(bench: Bench) -> None:
    (bench.workspace / "many.txt").write_text("x\n" * 5_000)
    (bench.workspace / "binary").write_bytes(b"x\x00")
    assert bench.text("search_files", pattern="x").splitlines()[-1] == (
        "[50 matches in 1 of 1 files; 1 files have more than the 50 shown; 1 binary files skipped]"
    )
    for number in range(40):
        (bench.workspace / f"{number}.txt").write_text(("x" * 290 + "\n") * 50)
    text = bench.text("search_files", pattern="x")
    assert len(text) <= 40_000
    assert "more exist: narrow path, glob or pattern" in text.splitlines()[-1]


def test_of_a_long_line_the_part_around_the_match_is_shown(bench: Bench) -> None:
    (bench.workspace / "one-line.json").write_text("a" * 3_000_000 + "needle" + "b" * 3_000_000)
    lines = bench.text("search_files", pattern="needle").splitlines()
    assert lines[0].startswith("one-line.json:1: ")
    assert "needle" in lines[0]
    assert len(lines[0]) < 350


HOSTILE = ["(a+)+$", "(a|aa)+$", "(a|a?)+b", "((a{0,50}){0,18})*b", "(.*)(.*)(.*)(.*)(.*)[^a]$", r"(\pL|\pN|a|b|c)*\d$"]


@pytest.mark.parametrize("pattern", HOSTILE)
def test_a_hostile_pattern_on_hostile_text_stops_no_other_thread(
    bench: Bench, pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same pattern in Python's own engine holds the interpreter for longer than anybody waits."""
    monkeypatch.setattr("workers.tools.search_files._SEARCH_S", 2.0)
    (bench.workspace / "hostile.txt").write_text(("a" * 30 + "!\n") * 100 + "a" * 4_000_000 + "!\n")
    gaps: list[float] = []
    stop = threading.Event()

    def tick() -> None:
        last = time.monotonic()
        while not stop.wait(0.01):
            now = time.monotonic()
            gaps.append(now - last)
            last = now

    thread = threading.Thread(target=tick)
    thread.start()
    began = time.monotonic()
    try:
        bench.run("search_files", pattern=pattern)
    finally:
        took = time.monotonic() - began
        stop.set()
        thread.join(10)
    assert took < 5 * slack()
    assert max(gaps, default=0) < 0.5


def test_a_search_that_takes_long_tells_what_it_has(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.tools.search_files._SEARCH_S", 0.5)
    for number in range(60):
        (bench.workspace / f"{number}.txt").write_bytes(b"needle\n" + b"a" * 4_000_000)
    text = bench.text("search_files", pattern="needle|((a?b?){200}c)")
    assert "needle" in text
    assert text.endswith("stopped early; name a folder to go on there]")

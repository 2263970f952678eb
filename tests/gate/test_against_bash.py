"""What the gate understands of a line, beside what bash makes of it: whatever bash would start was understood to be
started, or the line was said not to be understood."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any, cast

import re2

from shared.gate.shell.found import Reading
from shared.gate.shell.marks import ONE, STAR, UNKNOWN
from shared.gate.shell.read import read
from tests.gate.making import Maker

# There is no program of any name: bash asks this function instead, which writes down what it was to start.
_TOLD = "command_not_found_handle() { printf '%s\\0' \"$@\" $'\\1' >&9; }\n"
_re2 = cast("Any", re2)  # the package has no types
_LINES = 120


def started(line: str, folder: Path) -> list[list[str]]:
    """The programs that bash would have started, each with its words, in order; bash is real, and finds none."""
    record = folder / "started"
    record.write_bytes(b"")
    with record.open("ab") as file:
        subprocess.run(
            ["/bin/bash", "--norc", "--noprofile", "-c", f"exec 9>&{file.fileno()}\n{_TOLD}{line}"],
            cwd=folder, env={"PATH": "/nonexistent", "HOME": "/home/x"}, pass_fds=(file.fileno(),), timeout=10,
            capture_output=True, stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip
    told = record.read_bytes().decode("utf-8", "replace").split("\1\0")
    return [call.split("\0")[:-1] for call in told if call]


def understood(reading: Reading, call: list[str]) -> bool:
    """Whether one of the programs that were understood may be this one. A word that is not known may be any number of
    words."""
    joined = "\0".join(call) + "\0"
    return any(_may_be(one.argv, joined) for one in reading.invocations if one.argv)


def _may_be(argv: tuple[str, ...], joined: str) -> bool:
    marks = {UNKNOWN: r"(?:.|\x00)*", STAR: r"(?:.|\x00)*", ONE: r"(?:.|\x00)*", "\ue000": "/home/x"}
    pattern = ""
    for word in argv:
        wild = any(mark in word for mark in (UNKNOWN, STAR, ONE))
        pattern += "".join(marks.get(char) or str(_re2.escape(char)) for char in word)
        pattern += r"(?:\x00)?" if wild else r"\x00"
    return _re2.fullmatch(f"(?s){pattern}", joined) is not None


def misread(seed: int, count: int, folder: Path) -> list[tuple[str, list[str]]]:
    maker = Maker(seed)
    wrong: list[tuple[str, list[str]]] = []
    for _ in range(count):
        line = maker.line()
        reading = read(line)
        if reading.opaque:
            continue
        wrong += [(line, call) for call in started(line, folder) if not understood(reading, call)]
    return wrong


def test_whatever_bash_would_start_was_understood_or_the_line_was_not(tmp_path: Path) -> None:
    assert misread(5, _LINES, tmp_path) == []


def test_most_lines_are_understood() -> None:
    """Else the test above would hold for a reader that understands nothing."""
    maker = Maker(5)
    readings = [read(maker.line()) for _ in range(_LINES)]
    assert sum(not reading.opaque for reading in readings) > _LINES / 2

"""A batch whose calls overlap ends as it would have ended one call after the other: 1,000 random ones, and what is
hard."""

from __future__ import annotations

import json
import os
import random
import shutil
import tempfile
import threading
from collections.abc import Generator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.tools.conftest import Bench
from workers import abreast
from workers.tools import areas, registry, segments
from workers.tools.context import ToolContext, ToolResult
from workers.tools.segments import Touched

Call = tuple[str, dict[str, Any]]
BATCHES, MOST_CALLS = 1_000, 7
PATHS = (
    "a",
    "b",
    "d/a",
    "d/b",
    "d/e/a",
    "D/A",
    "link",
    "way/a",
    "new/a",
    "new/b",
    "input/a",
    "input",
    ".",
    "d",
    "../a",
)
CONTENTS = ("one\n", "two\nthree\n", "")


@pytest.fixture
def here() -> Generator[Path]:
    """In memory where there is such a folder: a thousand batches sync thousands of files."""
    shm = Path("/dev/shm")
    made = Path(tempfile.mkdtemp(dir=shm if os.access(shm, os.W_OK) else None))
    yield made
    shutil.rmtree(made)


def _house(top: Path, chance: random.Random) -> Bench:
    """A small tree; of two with the same chance the same."""
    bench = Bench(top / "workspace", top / "attached", top / "outside")
    for folder in (bench.workspace / "d" / "e", bench.attached):
        folder.mkdir(parents=True)
    for path in ("a", "d/a", "d/e/a"):
        if chance.random() < 0.7:
            (bench.workspace / path).write_text(chance.choice(CONTENTS))
    (bench.attached / "a").write_text("attached\n")
    if chance.random() < 0.5:
        (bench.workspace / "link").symlink_to("a")
        (bench.workspace / "way").symlink_to("d")
    return bench


def _calls(chance: random.Random) -> list[Call]:
    return [_call(chance) for _ in range(chance.randint(2, MOST_CALLS))]


def _call(chance: random.Random) -> Call:
    path = chance.choice(PATHS)
    match chance.randrange(8):
        case 0 | 1 | 2:
            return "read_file", {"path": path}
        case 3 | 4:
            return "write_file", {"path": path, "content": chance.choice(CONTENTS)}
        case 5:
            return "list_files", {"path": path, "depth": chance.randint(1, 3)}
        case 6:
            return "todo", {"items": [{"text": path, "done": False}]}
        case _:
            return chance.choice([("read_file", {}), ("nonsense", {"path": path}), ("write_file", {"path": path})])


def _one_by_one(bench: Bench, calls: list[Call]) -> list[ToolResult]:
    return [bench.run(name, **arguments) for name, arguments in calls]


def _in_segments(bench: Bench, calls: list[Call], widths: list[int]) -> list[ToolResult]:
    """As a worker runs a batch (workers/toolbatch.py), without its rows."""
    results: list[ToolResult] = []
    while len(results) < len(calls):
        left = calls[len(results) :]
        context = bench.context()
        size = segments.together(_touched(context, call) for call in left)
        widths.append(size)
        works = [partial(bench.run, name, **arguments) for name, arguments in left[:size]]
        results += [result for _, result in sorted(abreast.ends(works, threading.Event()), key=lambda end: end[0])]
    return results


def _touched(context: ToolContext, call: Call) -> Touched | None:
    name, arguments = call
    return areas.of_call(context, registry.TOOLS.get(name), json.dumps(arguments))


def _state(top: Path) -> dict[str, str]:
    return {
        path.relative_to(top).as_posix(): str(path.readlink()) if path.is_symlink() else path.read_text()
        for path in sorted(top.rglob("*"))
        if path.is_symlink() or path.is_file()
    }


def _without_times(result: ToolResult) -> ToolResult:
    """A list tells when each file was changed, and the two trees were not made in the same second."""
    lines = [line.rpartition("\t")[0] if line.count("\t") == 2 else line for line in result.text.split("\n")]
    return ToolResult("\n".join(lines), result.is_error, result.note, result.came)


def test_a_thousand_random_batches_end_as_one_call_after_the_other_would(here: Path) -> None:
    widths: list[int] = []
    for seed in range(BATCHES):
        top = here / str(seed)
        serial, wide = (_house(top / name, random.Random(seed)) for name in ("serial", "wide"))
        calls = _calls(random.Random(seed))
        expected = [_without_times(result) for result in _one_by_one(serial, calls)]
        came = [_without_times(result) for result in _in_segments(wide, calls, widths)]
        assert came == expected, (seed, calls)
        assert _state(top / "wide") == _state(top / "serial"), (seed, calls)
        shutil.rmtree(top)
    assert sum(width > 1 for width in widths) > BATCHES / 2  # else nothing was shown
    assert max(widths) > 4


# --- what is hard about a place -------------------------------------------------------------------------------------


def _sizes(bench: Bench, *calls: Call) -> list[int]:
    context = bench.context()
    return [len(one) for one in segments.segments([_touched(context, call) for call in calls])]


def test_two_names_of_one_folder_are_one_place(bench: Bench) -> None:
    (bench.workspace / "d").mkdir()
    (bench.workspace / "way").symlink_to("d")
    read, write = ("read_file", {"path": "way/a"}), ("write_file", {"path": "d/a", "content": ""})
    assert _sizes(bench, write, read) == [1, 1]
    assert _sizes(bench, write, ("read_file", {"path": "d/b"})) == [2]
    assert _sizes(bench, ("write_file", {"path": "./d//a", "content": ""}), ("read_file", {"path": "d/./a"})) == [1, 1]


def test_an_attached_folder_that_is_the_workspace_is_one_place_with_it(bench: Bench) -> None:
    bench.attached = bench.workspace
    assert _sizes(bench, ("write_file", {"path": "a", "content": ""}), ("read_file", {"path": "input/a"})) == [1, 1]
    assert _sizes(bench, ("write_file", {"path": "a", "content": ""}), ("search_files", {"pattern": "x"})) == [1, 1]


def test_whoever_makes_a_folder_meets_who_looks_beside_it(bench: Bench) -> None:
    write, read = ("write_file", {"path": "new/a", "content": ""}), ("read_file", {"path": "new/b"})
    assert _sizes(bench, write, read) == [1, 1]
    (bench.workspace / "new").mkdir()
    assert _sizes(bench, write, read) == [2]


def test_what_cannot_be_told_runs_alone(bench: Bench) -> None:
    read: Call = ("read_file", {"path": "a"})
    calls: list[Call] = [
        ("read_file", {"path": "../a"}), ("read_file", {}), ("nonsense", {}), ("clarify", {"question": "?"}),
        ("delegate_task", {"tasks": [{"goal": "x"}]}), ("memory", {"action": "add", "scope": "me"}),
        ("read_file", {"path": "/".join("d" * 1001)}), ("read_file", {"path": "a\nb"}),
    ]  # fmt: skip
    for odd in calls:
        assert _sizes(bench, read, odd, read) == [1, 1, 1], odd


def test_looking_where_a_call_goes_opens_nothing(bench: Bench) -> None:
    """A pipe without a writer would hold whoever opens it for ever; a loop of links has no end."""
    os.mkfifo(bench.workspace / "pipe")
    (bench.workspace / "round").symlink_to("round")
    deep = "/".join(["d"] * 300)
    (bench.workspace / deep).mkdir(parents=True)
    calls = [("read_file", {"path": path}) for path in ("pipe", "round", f"{deep}/a", "pipe/x")]
    assert _sizes(bench, *calls) == [4]
    assert all(bench.run(name, **arguments).is_error for name, arguments in calls)


def test_a_link_turned_after_the_look_leads_nowhere(bench: Bench) -> None:
    """Where a call goes is looked up to keep order, and for nothing else: the call itself follows no link at all."""
    (bench.workspace / "d").mkdir()
    (bench.workspace / "d" / "f.txt").write_text("inside")
    (bench.workspace / "way").symlink_to("d")
    call = ("write_file", {"path": "way/f.txt", "content": "gone"})
    assert _touched(bench.context(), call) is not None
    (bench.workspace / "way").unlink()
    (bench.workspace / "way").symlink_to(bench.outside)
    assert "links are not followed" in bench.error(call[0], **call[1])
    assert bench.outside_is_untouched()

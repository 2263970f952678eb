"""What `write_file` leaves behind: the whole file, or nothing."""

from __future__ import annotations

import os
import threading
import time

from deploy.drill.rig import slack
from tests.tools.conftest import Bench


def test_a_file_is_written_with_its_folders(bench: Bench) -> None:
    assert bench.text("write_file", path="a/b/c.txt", content="naïve\n") == "written: a/b/c.txt (7 bytes)"
    assert (bench.workspace / "a/b/c.txt").read_bytes() == "naïve\n".encode()
    assert (bench.workspace / "a/b/c.txt").stat().st_mode & 0o777 == 0o644


def test_replacing_a_file_keeps_its_permissions(bench: Bench) -> None:
    file = bench.workspace / "run.sh"
    file.write_text("old")
    file.chmod(0o750)
    assert bench.text("write_file", path="run.sh", content="new") == "replaced: run.sh (3 bytes)"
    assert file.read_text() == "new"
    assert file.stat().st_mode & 0o7777 == 0o750


def test_a_worker_that_lost_its_lease_while_it_wrote_changes_nothing(bench: Bench) -> None:
    """Others have been told by then that nobody knows what came of it, and until when it may still have happened."""
    (bench.workspace / "f.txt").write_text("old")
    bench.act_until = lambda: 0.0
    assert "nothing was changed" in bench.error("write_file", path="f.txt", content="new")
    assert (bench.workspace / "f.txt").read_text() == "old"
    assert [path.name for path in bench.workspace.iterdir()] == ["f.txt"]


def test_a_reader_sees_the_old_file_or_the_new_one_and_nothing_between(bench: Bench) -> None:
    contents = {"a" * 200_000, "b" * 200_000}
    file = bench.workspace / "f.txt"
    file.write_text("a" * 200_000)
    seen: set[str] = set()
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            seen.add(file.read_text())

    thread = threading.Thread(target=read)
    thread.start()
    try:
        for number in range(40):
            bench.text("write_file", path="f.txt", content=("a", "b")[number % 2] * 200_000)
    finally:
        stop.set()
        thread.join(10)
    assert seen <= contents
    assert [entry.name for entry in bench.workspace.iterdir()] == ["f.txt"]


def test_a_hard_link_to_a_file_elsewhere_is_parted_from_it_not_written_through(bench: Bench) -> None:
    os.link(bench.outside / "f.txt", bench.workspace / "f.txt")
    bench.text("write_file", path="f.txt", content="new")
    assert bench.outside_is_untouched()


def test_a_folder_is_not_replaced_and_a_file_is_no_folder(bench: Bench) -> None:
    (bench.workspace / "a").mkdir()
    (bench.workspace / "f").write_text("kept")
    assert bench.error("write_file", path="a", content="x") == "a is a folder and is not replaced"
    assert bench.error("write_file", path="f/g", content="x") == "f is a file, not a folder"
    assert bench.error("write_file", path=".", content="x") == "a file name is needed"
    assert (bench.workspace / "f").read_text() == "kept"


def test_too_much_is_refused_before_anything_is_written(bench: Bench) -> None:
    message = bench.error("write_file", path="a/f.txt", content="é" * 500_001)
    assert message == "the content is 1,000,002 bytes; at most 1,000,000 are written, so split it"
    assert list(bench.workspace.iterdir()) == []


def test_half_characters_and_nul_are_replaced(bench: Bench) -> None:
    bench.call("write_file", '{"path":"f.txt","content":"a\\ud800b\\u0000c"}')
    assert (bench.workspace / "f.txt").read_text() == "a\ufffdb\ufffdc"


def test_a_run_whose_time_is_over_at_the_last_moment_changes_nothing(bench: Bench) -> None:
    """A worker that was frozen after the start of a run and thawed when others have its turn."""
    (bench.workspace / "f.txt").write_text("the new holder's")
    answers = iter([False, True])
    bench.cancelled = lambda: next(answers)
    assert bench.error("write_file", path="f.txt", content="late") == "cancelled before it had finished"
    assert (bench.workspace / "f.txt").read_text() == "the new holder's"
    assert [entry.name for entry in bench.workspace.iterdir()] == ["f.txt"]


def test_a_deadline_in_the_past_runs_nothing(bench: Bench) -> None:
    bench.seconds = -1
    began = time.monotonic()
    assert "time for this run is over" in bench.error("write_file", path="f.txt", content="late")
    assert time.monotonic() - began < 1 * slack()
    assert list(bench.workspace.iterdir()) == []

"""No path leaves its root, whatever it is made of."""

from __future__ import annotations

import os
import socket
import stat
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tools.conftest import SECRET, Bench

TRICKS = [
    "/etc/passwd",
    "//etc/passwd",
    "..",
    "../outside/f.txt",
    "a/../../outside/f.txt",
    "./../outside/f.txt",
    "input/..",
    "input/../../outside/f.txt",
    "input/./../f.txt",
    "link/f.txt",
    "linkfile",
    "a/link/deep/f.txt",
    "input/link/f.txt",
    "~/x\n",
    "a\x00b",
    "a\tb",
    "a\x1b[2Jb",
    "a\x7fb",
    "a\x85b",
    "\ud800",
    "x" * 256,
    "é" * 128,
    "x/" * 20_000,
    "a/" * 1_001 + "f",
    ".nightshift/stack.json",
    ".NightShift/stack.json",
    "input/a/.nightshift/stack.json",
]


@pytest.fixture
def tricked(bench: Bench) -> Bench:
    _lay(bench)
    return bench


def _lay(bench: Bench) -> None:
    for root in (bench.workspace, bench.attached):
        (root / "a").mkdir(exist_ok=True)
        (root / "a/f.txt").write_text("inside")
        (root / ".nightshift").mkdir()
        (root / ".nightshift/stack.json").write_text(SECRET)
        for link in (root / "link", root / "a/link"):
            link.symlink_to(bench.outside)
        (root / "linkfile").symlink_to(bench.outside / "f.txt")
        (root / "loop").symlink_to("loop")
        (root / "self").symlink_to(".")


@pytest.mark.parametrize("path", TRICKS)
def test_a_path_that_could_lead_out_is_refused_by_every_tool(tricked: Bench, path: str) -> None:
    for result in (
        tricked.run("read_file", path=path),
        tricked.run("list_files", path=path),
        tricked.run("search_files", pattern=".", path=path),
        tricked.run("write_file", path=path, content="overwritten"),
        tricked.run("patch", path=path, old=SECRET, new="overwritten"),
        tricked.run("git_log", path=path),
    ):
        assert result.is_error
        assert SECRET not in result.text
        assert str(tricked.workspace.parent) not in result.text
        assert len(result.text) < 400
    assert tricked.outside_is_untouched()
    assert (tricked.workspace / ".nightshift/stack.json").read_text() == SECRET


def test_a_link_is_named_as_the_reason_even_in_the_middle_of_a_path(tricked: Bench) -> None:
    assert tricked.error("read_file", path="a/link/f.txt") == (
        "a/link is a link, and links are not followed; name what it points to"
    )
    assert tricked.error("read_file", path="input/linkfile") == (
        "input/linkfile is a link, and links are not followed; name the file itself"
    )
    assert "is a link" in tricked.error("write_file", path="linkfile", content="x")
    assert "is a link" in tricked.error("read_file", path="loop")
    assert "is a link" in tricked.error("list_files", path="self/self")


def test_listing_and_searching_everything_show_links_and_do_not_follow_them(tricked: Bench) -> None:
    listed = tricked.text("list_files", depth=64)
    assert "link\tlink\t" in listed
    assert "link/" not in listed
    assert "stack.json" not in listed
    found = tricked.text("search_files", pattern=f"inside|{SECRET}")
    assert found.splitlines()[:-1] == ["a/f.txt:1: inside", "input/a/f.txt:1: inside"]


def test_input_is_read_only_and_says_so(tricked: Bench) -> None:
    message = tricked.error("write_file", path="input/a/new.txt", content="x")
    assert message == "input/ is read-only; write to another path of the workspace"
    assert not (tricked.attached / "a/new.txt").exists()
    assert not (tricked.workspace / "input").exists()


def test_without_an_attached_folder_input_is_an_ordinary_name(bench: Bench) -> None:
    alone = bench.alone()
    alone.text("write_file", path="input/new.txt", content="x")
    assert (bench.workspace / "input/new.txt").read_text() == "x"


def test_the_attached_folder_stands_before_a_folder_of_that_name_in_the_workspace(bench: Bench) -> None:
    (bench.workspace / "input").mkdir()
    (bench.workspace / "input/hidden.txt").write_text("hidden")
    (bench.attached / "seen.txt").write_text("seen")
    assert "hidden" not in bench.text("list_files")
    assert "hidden" not in bench.text("search_files", pattern=".")
    assert bench.text("read_file", path="input/seen.txt") == "seen"


def test_what_is_no_file_is_never_opened(bench: Bench) -> None:
    os.mkfifo(bench.workspace / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        here = Path.cwd()
        os.chdir(bench.workspace)  # a socket's path may be 107 bytes long
        try:
            server.bind("door")
        finally:
            os.chdir(here)
        assert bench.error("read_file", path="pipe") == "pipe is a pipe, not a file"
        assert bench.error("read_file", path="door") == "door is a socket, not a file"
        assert bench.error("write_file", path="pipe", content="x") == "pipe is a pipe and is not replaced"
        assert "pipe is a pipe" in bench.error("patch", path="pipe", old="x", new="y")
        assert "door is a socket" in bench.error("patch", path="door", old="x", new="y")
        assert "[no match in 0 files" in bench.text("search_files", pattern="x")
        listed = bench.text("list_files")
    assert "pipe\tpipe\t" in listed
    assert "door\tsocket\t" in listed


def test_a_device_is_named_and_never_opened(bench: Bench) -> None:
    """`zero` has no end, and `full` takes nothing: whoever opened them would be told otherwise. Everybody has those of
    the system; in a workspace only root makes some, and not everywhere."""
    of_the_system = replace(bench, attached=Path("/dev"))
    made = [name for name, minor in (("zero", 5), ("full", 7)) if _is_made(bench.workspace / name, minor)]
    for name in ("input/zero", "input/full", *made):
        assert of_the_system.error("read_file", path=name) == f"{name} is a device, not a file"
    for name in made:
        assert bench.error("write_file", path=name, content="x") == f"{name} is a device and is not replaced"
        assert f"{name} is a device" in bench.error("patch", path=name, old="x", new="y")
    assert "[no match in 0 files" in bench.alone().text("search_files", pattern="x")
    listed = bench.text("list_files")
    assert [name for name in made if f"{name}\tdevice\t" not in listed] == []


def _is_made(path: Path, minor: int) -> bool:
    try:
        os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, minor))
    except PermissionError:
        return False
    return True


def test_a_folder_three_hundred_levels_deep_is_read_and_not_walked_for_ever(bench: Bench) -> None:
    names = ["d" * 30] * 300
    fd = os.open(bench.workspace, os.O_RDONLY)
    for name in names:
        os.mkdir(name, dir_fd=fd)
        inner = os.open(name, os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = inner
    written = os.open("f.txt", os.O_WRONLY | os.O_CREAT, dir_fd=fd)
    os.write(written, b"at the bottom")
    os.close(written)
    os.close(fd)
    assert bench.text("read_file", path="/".join([*names, "f.txt"])) == "at the bottom"
    bottom = "/".join([*names, "f.txt"])
    assert "64 are made" in bench.error("write_file", path=bottom, content="x")
    assert "-at the bottom\n+changed" in bench.text("patch", path=bottom, old="at the bottom", new="changed")
    assert bench.text("read_file", path=bottom) == "changed"
    assert "1 deeper folders not opened" in bench.text("list_files", depth=64)
    assert "1 deeper folders not opened" in bench.text("search_files", pattern="bottom")


def test_names_with_control_characters_stay_on_one_line_and_cannot_be_asked_for(bench: Bench) -> None:
    (bench.workspace / "a\nb\t\x1b[31m.txt").write_text("x")
    (bench.workspace / "gpj.\u202egnp").write_text("x")
    Path(os.fsdecode(os.fsencode(bench.workspace) + b"/latin\xe9.txt")).write_text("x")
    lines = bench.text("list_files").splitlines()
    assert [line.split("\t")[0] for line in lines] == [
        "a\\x0ab\\x09\\x1b[31m.txt",
        "gpj.\\u202egnp",
        "input/",
        "latin\\xe9.txt",
    ]
    for tool, more in (("read_file", {}), ("write_file", {"content": ""}), ("patch", {"old": "x", "new": "y"})):
        assert "control character" in bench.error(tool, path="a\nb\t\x1b[31m.txt", **more)


_NAMES = "|..|.|a|link|linkfile|self|loop|f.txt|deep|input|outside|workspace|.nightshift|stack.json"
_PIECES = st.sampled_from([*_NAMES.split("|"), "\x00", "~", "\\", "%2e%2e", "..\\", "\u2024\u2024", "…"])


@settings(max_examples=150, deadline=None)
@given(pieces=st.lists(_PIECES, max_size=7), leading=st.sampled_from(["", "/", "//", "./", "../"]))
def test_no_mixture_of_tricks_reads_or_writes_outside(pieces: list[str], leading: str) -> None:
    with tempfile.TemporaryDirectory() as top:
        base = Path(top)
        bench = Bench(base / "workspace", base / "attached", base / "outside")
        for folder in (bench.workspace, bench.attached, bench.outside / "deep"):
            folder.mkdir(parents=True)
        for file in (bench.outside / "f.txt", bench.outside / "deep/f.txt"):
            file.write_text(SECRET)
        _lay(bench)
        path = leading + "/".join(pieces)
        for result in (
            bench.run("read_file", path=path),
            bench.run("list_files", path=path, depth=3),
            bench.run("write_file", path=path, content="overwritten"),
        ):
            assert SECRET not in result.text
            assert top not in result.text
        assert bench.outside_is_untouched()
        assert sorted(entry.name for entry in base.iterdir()) == ["attached", "outside", "workspace"]
        assert (bench.attached / "a/f.txt").read_text() == "inside"

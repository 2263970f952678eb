"""A model that looks for the house's own keys in what was attached."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from deploy.local import home
from shared.boottime import boottime
from workers.tools import dispatch
from workers.tools.context import ToolContext


def _context(tmp_path: Path, attached: Path) -> ToolContext:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    return ToolContext(
        session="s", turn="t", step=1, ordinal=1, workspace=workspace, attached=attached, cancelled=lambda: False,
        deadline=boottime() + 30,
    )  # fmt: skip


def _looks(context: ToolContext, path: str, name: str, word: str) -> str:
    """All that the tools give away about `name` in the folder `path`."""
    calls = (
        ("read_file", {"path": f"{path}/{name}"}),
        ("list_files", {"path": path, "depth": 5}),
        ("list_files", {"path": "input", "depth": 5}),
        ("search_files", {"pattern": word, "path": path}),
        ("search_files", {"pattern": word, "path": "input"}),
    )
    return "\n".join(dispatch.run_one(context, tool, json.dumps(given)).text for tool, given in calls)


@pytest.mark.parametrize("inside", [".", "some/where", ".NightShift"])
def test_a_stacks_home_inside_an_attached_folder_stays_closed(inside: str, tmp_path: Path) -> None:
    attached = tmp_path / "attached"
    made = home.open_home(attached / inside)
    token = home.secret(made, "admin-token")
    made.stack_file.write_text(json.dumps({"token": token}))
    (attached / "notes.md").write_text("milk, bread")
    context = _context(tmp_path, attached)

    found = _looks(context, f"input/{inside}", "stack.json", token[:12])

    assert token not in found
    assert "stack.json:" not in found  # no hit of the search
    if inside != ".":
        assert "milk" in dispatch.run_one(context, "read_file", '{"path":"input/notes.md"}').text


@pytest.mark.parametrize("inside", ["postgres", "logs", "workspaces/another/deep"])
def test_a_folder_inside_a_stacks_home_stays_closed_however_it_came_to_be_attached(inside: str, tmp_path: Path) -> None:
    made = home.open_home(tmp_path / "a home")
    home.secret(made, "admin-token")
    (made.root / inside).mkdir(parents=True, exist_ok=True)
    (made.root / inside / "found.txt").write_text("the house's own")
    (tmp_path / "notes").symlink_to(made.root / inside)  # harmless when it was named, and led elsewhere since
    for number, attached in enumerate((made.root / inside, tmp_path / "notes")):
        (tmp_path / str(number)).mkdir()
        context = _context(tmp_path / str(number), attached)
        assert "own" not in _looks(context, "input", "found.txt", "house's own")
        result = dispatch.run_one(context, "read_file", '{"path":"input/found.txt"}')
        assert (result.is_error, "not open to tools" in result.text) == (True, True), result.text


def test_the_hosts_processes_stay_closed_where_the_whole_disk_is_attached(tmp_path: Path) -> None:
    context = _context(tmp_path, Path("/"))
    why = "not open to tools" if Path("/proc").is_mount() else "does not exist"
    for path in (f"input/proc/{os.getpid()}/environ", f"input/proc/{os.getpid()}/cmdline"):
        result = dispatch.run_one(context, "read_file", json.dumps({"path": path}))
        assert (result.is_error, why in result.text) == (True, True), result.text

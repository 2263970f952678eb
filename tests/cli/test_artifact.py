"""`artifact`: the whole of what the transcript holds a preview of, page by page, byte for byte."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from api.cli import artifact
from api.cli.main import main
from tests.cli.surface import Surface

WHOLE = "".join(f"{n} 数据\u202e é \x1b[31m\U0001f600\r\n" for n in range(400)).encode() + bytes(range(256))
PATH = "/v1/sessions/s-1/artifacts/a-1"


@pytest.fixture
def kept(surface: Surface, monkeypatch: pytest.MonkeyPatch) -> Surface:
    """In pages that cut through characters."""
    monkeypatch.setattr(artifact, "PAGE", 1_001)
    surface.artifacts[PATH] = WHOLE
    return surface


@pytest.mark.parametrize("name", ["a-1", "artifact:a-1"])
def test_it_comes_page_by_page_and_is_written_byte_for_byte(
    kept: Surface, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    goal = tmp_path / "whole.txt"
    assert main(["artifact", "s-1", name, "--out", str(goal), "--json"]) == 0
    assert goal.read_bytes() == WHOLE
    assert json.loads(capsys.readouterr().out) == {"file": str(goal), "bytes": len(WHOLE)}
    asked = [int(one.query["offset"]) for one in kept.asked if one.path == PATH]
    assert asked == list(range(0, len(WHOLE), 1_001))
    assert [path.name for path in tmp_path.iterdir()] == ["whole.txt"]


def test_without_a_file_the_bytes_go_to_whoever_reads_the_output(
    kept: Surface, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert main(["artifact", "s-1", "a-1"]) == 0
    assert capfdbinary.readouterr().out == WHOLE


def test_an_empty_one_is_empty(kept: Surface, tmp_path: Path) -> None:
    kept.artifacts[PATH] = b""
    assert main(["artifact", "s-1", "a-1", "--out", str(tmp_path / "none")]) == 0
    assert (tmp_path / "none").read_bytes() == b""


def test_what_cannot_be_had_whole_leaves_the_file_as_it_was(
    kept: Surface, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    goal = tmp_path / "whole.txt"
    goal.write_text("as it was", "utf-8")
    assert main(["artifact", "s-1", "another", "--out", str(goal)]) == 1
    assert "not yours to see" in capsys.readouterr().err
    kept.refusals = [(200, b"x" * 9, {"x-nightshift-size": "20"}), (200, b"", {"x-nightshift-size": "20"})]
    assert main(["artifact", "s-1", "a-1", "--out", str(goal)]) == 1
    assert "only 9 of 20 bytes came" in capsys.readouterr().err
    kept.refusals = [(200, b"x" * 9, {})]
    assert main(["artifact", "s-1", "a-1", "--out", str(goal)]) == 1
    assert "newer than the service" in capsys.readouterr().err
    assert [(path.name, path.read_text("utf-8")) for path in tmp_path.iterdir()] == [("whole.txt", "as it was")]


def test_a_folder_that_is_not_there_is_said(kept: Surface, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["artifact", "s-1", "a-1", "--out", str(tmp_path / "no" / "x")]) == 1
    assert "cannot be written: No such file or directory" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []

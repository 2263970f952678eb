"""A folder from somewhere, with a `.nightshift` of its own, in which a person runs the command line."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from api.cli import connection
from api.cli.exits import Stop

URL = "http://127.0.0.1:9"


@pytest.fixture
def stranger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The `.nightshift` of the folder that the person stands in."""
    inside = tmp_path / ".nightshift"
    inside.mkdir()
    (inside / "stack.json").write_text(json.dumps({"url": URL, "token": "theirs"}))
    monkeypatch.chdir(tmp_path)
    for name in ("NIGHTSHIFT_HOME", "NIGHTSHIFT_URL", "NIGHTSHIFT_TOKEN", "NIGHTSHIFT_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    return inside


@pytest.mark.parametrize("told_by", ["stack.json", "nightshift.toml"])
def test_the_persons_token_does_not_go_to_an_address_that_a_folder_brought(
    told_by: str, stranger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if told_by == "nightshift.toml":
        (stranger / told_by).write_text(f'url = "{URL}"\n')
    monkeypatch.setenv("NIGHTSHIFT_TOKEN", "mine")
    with pytest.raises(Stop) as refused:
        connection.find()
    assert refused.value.code == "token_for_another"
    monkeypatch.setenv("NIGHTSHIFT_HOME", str(stranger))  # said by the person: then it is meant
    assert connection.find().token == "mine"


def test_a_stack_that_another_user_wrote_is_not_used_unasked(stranger: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (connection.find().url, connection.find().token) == (URL, "theirs")
    monkeypatch.setattr(os, "geteuid", lambda: (stranger / "stack.json").stat().st_uid + 1)
    with pytest.raises(Stop) as refused:
        connection.find()
    assert refused.value.code == "stack_of_another"

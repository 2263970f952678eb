"""Whatever goes wrong is a code and a sentence, with the exit code that the contract names; never a traceback."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from api.cli.main import main
from tests.cli.surface import Surface

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("status", "problem", "exit_code", "words"),
    [
        (
            401,
            {"code": "token_invalid", "detail": "this token is not accepted"},
            1,
            ("token_invalid", "NIGHTSHIFT_TOKEN"),
        ),
        (403, {}, 1, ("http_403", "role")),
        (404, {"code": "not_found", "detail": "no such session"}, 1, ("not_found: no such session",)),
        (409, {"code": "session_busy", "detail": "a turn runs"}, 1, ("session_busy: a turn runs",)),
        (422, {"code": "input_invalid", "detail": "cap_usd: more than 0"}, 2, ("input_invalid: cap_usd",)),
        (429, {"code": "too_many_queued", "detail": "100 turns wait"}, 1, ("100 turns wait",)),
        (402, {"code": "session_cap_reached", "detail": "$1 is spent"}, 4, ("session_cap_reached",)),
        (500, b"<html>oops</html>", 1, ("http_500",)),
        (302, b"", 1, ("not_nightshift", "elsewhere")),
        (200, b"<html>hello</html>", 1, ("not_nightshift", "JSON")),
    ],
)
def test_each_refusal_is_one_line(
    surface: Surface,
    capsys: pytest.CaptureFixture[str],
    status: int,
    problem: dict[str, Any] | bytes,
    exit_code: int,
    words: tuple[str, ...],
) -> None:
    surface.refusals = [(status, problem, {})]
    assert main(["show", "s-1"]) == exit_code
    said = capsys.readouterr()
    assert said.out == ""
    assert len(said.err.splitlines()) == 1
    for word in words:
        assert word in said.err


def test_a_service_that_says_it_will_be_back_is_asked_again(surface: Surface) -> None:
    surface.refusals = [(503, {"code": "database_unavailable"}, {"retry-after": "0"})] * 2
    assert main(["sessions"]) == 0
    assert len(surface.asked) == 3


def test_a_service_that_is_away_for_long_is_not_waited_for(
    surface: Surface, capsys: pytest.CaptureFixture[str]
) -> None:
    surface.refusals = [(503, {"code": "database_unavailable", "detail": "no database"}, {"retry-after": "600"})]
    assert main(["sessions"]) == 1
    assert "nightshift doctor" in capsys.readouterr().err


def test_a_post_whose_answer_was_lost_is_sent_again_under_the_same_key(surface: Surface) -> None:
    surface.refusals = [(0, b"", {})]
    assert main(["send", "hello", "--session", "s-1"]) == 0
    first, second = surface.asked
    assert first.headers["idempotency-key"] == second.headers["idempotency-key"]
    assert first.body == second.body


def test_an_address_where_nobody_listens_is_told_with_the_mend(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        monkeypatch.setenv("NIGHTSHIFT_URL", f"http://127.0.0.1:{closed.getsockname()[1]}")
        monkeypatch.setenv("NIGHTSHIFT_TOKEN", "t")
        assert main(["sessions"]) == 1
    assert "api_unreachable" in (said := capsys.readouterr().err)
    assert "./dev up" in said


def test_without_a_stack_the_mend_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.delenv("NIGHTSHIFT_URL", raising=False)
    monkeypatch.delenv("NIGHTSHIFT_TOKEN", raising=False)
    monkeypatch.setenv("NIGHTSHIFT_HOME", str(tmp_path))
    assert main(["sessions"]) == 2
    assert "start one with `./dev up`" in capsys.readouterr().err


def test_the_running_stacks_file_is_enough(surface: Surface, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "stack.json").write_text(json.dumps({"url": surface.url, "token": "token-of-the-test"}))
    monkeypatch.delenv("NIGHTSHIFT_URL")
    monkeypatch.delenv("NIGHTSHIFT_TOKEN")
    assert main(["sessions"]) == 0


def test_an_address_without_a_token_is_wrong_use(surface: Surface, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NIGHTSHIFT_TOKEN")
    assert main(["sessions"]) == 2


@pytest.mark.parametrize(
    "words", [[], ["nonsense"], ["send", "x", "--on-busy", "wait"], ["send", "x", "--cap-usd", "-1"]]
)
def test_wrong_use_ends_with_two(words: list[str]) -> None:
    assert main(words) == 2


def test_a_reader_that_has_seen_enough_hears_no_complaint(surface: Surface) -> None:
    surface.sessions = {f"s-{n}": {"id": f"s-{n}", "title": "t" * 60} for n in range(1000)}
    done = subprocess.run(
        ["sh", "-c", f"{sys.executable} -m api.cli sessions --limit 1000 | head -1"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout.startswith("SESSION")


def test_help_comes_at_once() -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "api.cli", "--help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert not imported & {"httpx", "rich", "pydantic", "celery", "psycopg", "sqlalchemy"}

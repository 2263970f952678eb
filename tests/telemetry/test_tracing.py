"""Content is traced where the deployment asked for it, into files of its own, rid of keys; and else nowhere."""

from __future__ import annotations

import json
import stat
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from api.cli.doctor import extensions
from api.cli.doctor.finding import Facts, State
from deploy.drill.rig import until
from shared.errors import SettingsError
from shared.redact import REDACTOR, TAKEN_OUT
from shared.settings import Settings
from tests.ground import Ground, Rehearsal
from tests.loop.conftest import worker
from workers import tracing
from workers.tracing import Traced, Tracer

__all__ = ["worker"]
WORDS = "the-words-of-this-very-turn"
KEY = "knownkey-4711-of-this-test"


def traced(number: int = 0, text: str = "x") -> Traced:
    return Traced(UUID(int=1), UUID(int=2), uuid4(), number, "main", "m", text.encode(), text, (), "end_turn")


def files(folder: Path) -> list[Path]:
    return sorted(one for one in folder.rglob("*") if one.is_file())


def a_turn(worker: Ground, provider: Rehearsal) -> UUID:
    session = worker.session()
    todo: dict[str, Any] = {"name": "todo", "input": {"items": [{"text": f"{WORDS} {KEY}", "done": False}]}}
    provider.script([{"text": WORDS, "tools": [todo]}, {"text": f"{WORDS} again"}], session=str(session))
    turn = worker.turn(session, f"{WORDS} and {KEY}")
    worker.look()
    assert worker.view(turn)["status"] == "done"
    return turn


def test_unless_somebody_asks_no_file_holds_a_word(worker: Ground, provider: Rehearsal) -> None:
    assert Settings().content_trace is None
    assert tracing.begin(worker.settings) is None
    assert worker.ports.content is None
    a_turn(worker, provider)
    assert [one for one in files(worker.home) if WORDS.encode() in one.read_bytes()] == []


def test_asked_for_each_call_is_a_file_that_only_its_owner_reads_without_keys(
    worker: Ground, provider: Rehearsal, tmp_path: Path
) -> None:
    REDACTOR.learn((KEY,))
    folder = tmp_path / "traces" / "content"
    tracer = tracing.begin(worker.settings.model_copy(update={"content_trace": folder}))
    assert tracer is not None
    worker.ports = replace(worker.ports, content=tracer)
    turn = a_turn(worker, provider)
    tracer.close()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(one.stat().st_mode) for one in files(folder)} == {0o600}
    found = sorted((json.loads(one.read_text()) for one in files(folder)), key=lambda one: one["step"])
    calls = worker.rows("select id, step from calls where turn = %s order by step", turn)
    assert [(one["call"], one["step"]) for one in found] == [(str(row["id"]), row["step"]) for row in calls]
    first, second = found
    assert WORDS in json.loads(first["request"])["messages"][0]["content"][0]["text"]
    assert [first["answer"], second["answer"]] == [WORDS, f"{WORDS} again"]
    assert first["tools"][0]["name"] == "todo"
    assert TAKEN_OUT in first["request"]
    assert not [one for one in files(folder) if KEY.encode() in one.read_bytes()]


def test_the_folder_never_holds_more_than_it_may_and_the_oldest_go_first(tmp_path: Path) -> None:
    tracer = Tracer(tmp_path / "t", 20_000)
    for number in range(30):
        tracer.put(traced(number, "y" * 1_000))
    tracer.close()
    left = files(tmp_path / "t")
    assert sum(one.stat().st_size for one in left) <= 20_000
    assert 0 < len(left) < 30
    assert (tracer.dropped, tracer.failed) == (0, 0)


def test_where_more_comes_than_is_written_it_is_left_out_and_counted_and_nobody_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = threading.Event()

    def stuck(_path: Path, _text: str) -> None:
        gate.wait(30)

    monkeypatch.setattr(tracing, "_write", stuck)
    tracer = Tracer(tmp_path / "t", 1_000_000, waiting_bytes=1_000)
    tracer.put(traced(0))
    until(lambda: not tracer._waiting, 10, "the writer to be stuck")
    for number in range(10):
        tracer.put(traced(number, "z" * 150))
    assert tracer.dropped == 7
    gate.set()
    tracer.close()


def test_a_folder_that_goes_away_costs_its_files_alone(tmp_path: Path) -> None:
    tracer = Tracer(tmp_path / "t", 1_000_000)
    (tmp_path / "t").rmdir()
    tracer.put(traced())
    tracer.close()
    assert tracer.failed == 1


def test_what_cannot_be_looked_through_is_withheld(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_text: str) -> Any:
        raise RuntimeError("out of order")

    monkeypatch.setattr(REDACTOR, "_cleaned", fails)
    tracer = Tracer(tmp_path / "t", 1_000_000)
    tracer.put(traced(text=WORDS))
    tracer.close()
    (one,) = files(tmp_path / "t")
    assert WORDS not in one.read_text()


def test_a_folder_that_others_may_read_stops_the_start(tmp_path: Path) -> None:
    for name, mode in (("group", 0o750), ("all", 0o755)):
        (tmp_path / name).mkdir()
        (tmp_path / name).chmod(mode)
        with pytest.raises(SettingsError, match="chmod 700"):
            Tracer(tmp_path / name, 1)
    (tmp_path / "own").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "own")
    with pytest.raises(SettingsError, match="chmod 700"):
        Tracer(tmp_path / "link", 1)
    (tmp_path / "file").touch()
    with pytest.raises(SettingsError, match="CONTENT_TRACE"):
        Tracer(tmp_path / "file", 1)


def test_doctor_says_where_it_is_on(tmp_path: Path) -> None:
    def said(settings: Settings, stack: dict[str, Any] | None = None) -> list[tuple[State, str]]:
        known = Facts(tmp_path, settings, "", "", "", "", "", "", None, stack)
        return [(one.state, one.seen) for one in extensions.content_trace(known)]

    assert said(Settings()) == said(Settings(), {"content_trace": None}) == []
    assert len(said(Settings(), {"content_trace": str(tmp_path)})) == 1, "it is the workers who write"
    ((state, seen),) = said(Settings(content_trace=tmp_path / "t"))
    assert state is State.NOTE
    assert str(tmp_path / "t") in seen

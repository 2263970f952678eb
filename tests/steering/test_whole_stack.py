"""Processes of their own: Redis gone while a person speaks, and a worker killed in the moment of the cut."""

from __future__ import annotations

import os
import signal
import tempfile
import threading
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from shared import stream
from tests.chaos.rig import Rig, slack, stack, until

LONG = {"text": "one two three four five six seven eight nine ten", "chunks": 10, "gap_s": 1.0}


@pytest.fixture(scope="module")
def armed() -> Generator[Path]:
    """A folder in which a point is armed by making a folder of its name."""
    with tempfile.TemporaryDirectory(prefix="ns-arm-") as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def rig(armed: Path) -> Generator[Rig]:
    with stack(workers=2, concurrency=4, settings={"pause_at": f"armed:{armed}"}) as running:
        running.workers_ready(2)
        yield running


def _streaming(rig: Rig, *more: dict[str, Any]) -> tuple[str, str]:
    session = rig.session()
    rig.script(session, [LONG, *more])
    turn = rig.send(session, "count")
    rig.wait(begun=1, session=session)
    return session, turn


def _steer(rig: Rig, turn: str, text: str) -> None:
    answer = rig.http.post(f"/v1/turns/{turn}/steer", json={"input": text})
    assert (answer.status_code, answer.json()["how"]) == (202, "steered"), answer.text


def _accounted(rig: Rig, session: str, turn: str, said: list[str]) -> dict[str, Any]:
    """Every word is in the transcript once and in order, the bill is right, and the provider took each request."""
    view = rig.ended(turn)
    assert view["status"] == "done", view
    rows = rig.rows("select content, author from messages where session = %s and role = 'user' order by id", session)
    found = [text for row in rows for text in said if f'"{text}"' in row["content"]]
    assert found == said
    assert rig.rows("select 1 from inbox where session = %s and folded_into is null", session) == []
    calls = [row["status"] for row in rig.rows("select status from calls where turn = %s", turn)]
    assert view["steps_refunded"] == calls.count("cut") + calls.count("lost")
    assert view["steps_used"] == calls.count("settled")
    ledger = rig.provider.ledger(session)
    assert [call["difference"] for call in ledger if call["extended"] is False] == []
    assert {call["state"] for call in ledger} <= {"done", "client_closed"}
    assert rig.one("select reserved_usd from sessions where id = %s", session)["reserved_usd"] == 0
    return view


def test_with_redis_gone_the_call_is_cut_within_two_seconds(rig: Rig) -> None:
    session, turn = _streaming(rig, {"text": "heard without it"})
    with rig.held_down("valkey"):
        asked = time.monotonic()
        _steer(rig, turn, "stop, please")
        rig.wait(begun=2, session=session)
        took = time.monotonic() - asked
        view = rig.ended(turn)
    assert took < 2.0 * slack(), took
    assert view["answer"] == "heard without it"
    _accounted(rig, session, turn, ["count", "stop, please"])


def test_by_a_hint_it_takes_less_than_one(rig: Rig) -> None:
    took: list[float] = []
    for n in range(3):
        session, turn = _streaming(rig, {"text": "heard"})
        asked = time.monotonic()
        _steer(rig, turn, f"stop {n}")
        rig.wait(begun=2, session=session)
        took.append(time.monotonic() - asked)
        _accounted(rig, session, turn, ["count", f"stop {n}"])
    assert min(took) < 0.7 * slack(), took
    assert max(took) < 1.5 * slack(), took


@pytest.mark.parametrize("point", ["recording", "recorded", "reserved"])
def test_a_worker_killed_in_the_cut_loses_no_word(rig: Rig, armed: Path, point: str) -> None:
    rig.workers_ready(2)
    session, turn = _streaming(rig, {"text": "taken up"}, {"text": "taken up"})
    until(lambda: len(_shown(rig, turn)) > 3, 10 * slack(), "some text")
    folder = armed / point
    folder.mkdir()
    _steer(rig, turn, "stop there")
    pid = until(lambda: _held(folder), 10 * slack(), f"a worker at {point}")
    rig.kill(pid)

    view = _accounted(rig, session, turn, ["count", "stop there"])
    assert view["answer"] == "taken up"
    kept = rig.rows("select content from messages where turn = %s and cut", turn)
    assert len(kept) == (0 if point == "recording" else 1)  # what was not committed is not there
    assert rig.one("select takeovers from turns where id = %s", turn)["takeovers"] == 1


def test_words_that_wait_for_an_end_whose_worker_is_killed_go_on_with_the_turn(rig: Rig, armed: Path) -> None:
    """The end holds the turn's row, dies, and the words find a turn that is not over."""
    rig.workers_ready(2)
    session = rig.session()
    rig.script(session, [{"text": "first"}, {"text": "second"}])
    folder = armed / "finishing"
    folder.mkdir()
    turn = rig.send(session, "count")
    pid = until(lambda: _held(folder), 10 * slack(), "a worker that ends")
    thread = threading.Thread(target=_steer, args=(rig, turn, "one thing more"))
    thread.start()
    waits = "select 1 from pg_stat_activity where wait_event_type = 'Lock' and position('for update' in query) > 0"
    until(lambda: rig.rows(waits), 5, "words that wait")
    rig.kill(pid)
    thread.join(20)
    view = _accounted(rig, session, turn, ["count", "one thing more"])
    assert view["answer"] == "second"


def test_five_at_once_through_a_kill_keep_their_order(rig: Rig) -> None:
    rig.workers_ready(2)
    session, turn = _streaming(rig, *[{**LONG, "text": "now eleven twelve"}] * 6, {"text": "x"})
    holder = rig.holder(turn)
    assert holder is not None
    said = [f"say {n}" for n in range(5)]
    for n, text in enumerate(said):
        _steer(rig, turn, text)
        if n == 2:
            os.kill(holder["pid"], signal.SIGKILL)
    _accounted(rig, session, turn, ["count", *said])


def _shown(rig: Rig, turn: str) -> str:
    found = [stream.decode(fields) for _, fields in rig.redis().xrange(stream.key(turn))]
    return "".join(event.data["text"] for event in found if event is not None and event.kind.value == "text.delta")


def _held(folder: Path) -> int | None:
    return next((int(p.name) for p in folder.iterdir() if p.name.isdigit() and p.read_text()), None)

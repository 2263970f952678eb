"""Two inputs at once to one session, in each way of being busy; cursors that are stale, future or foreign."""

from __future__ import annotations

import random
import threading
from typing import Any

import httpx
import pytest

from tests.acceptance import long_session
from tests.acceptance.house import Rig, refused
from tests.acceptance.watching import events, watch


def _at_once(stack: Rig, session: str, mode: str, texts: tuple[str, ...]) -> list[httpx.Response]:
    barrier = threading.Barrier(len(texts))
    answers: dict[str, httpx.Response] = {}

    def post(text: str) -> None:
        barrier.wait(10)
        answers[text] = stack.http.post(f"/v1/sessions/{session}/turns", json={"input": text, "on_busy": mode})

    threads = [threading.Thread(target=post, args=(text,)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return [answers[text] for text in texts]


def _said(stack: Rig, session: str) -> list[str]:
    found = stack.http.get(f"/v1/sessions/{session}/messages").json()["items"]
    return sorted(
        block["text"] for one in found if one["role"] == "user" for block in one["content"] if block["type"] == "text"
    )


def _turns(stack: Rig, answers: list[httpx.Response]) -> set[str]:
    turns = {answer.json()["turn"]["id"] for answer in answers if answer.status_code == 202}
    for turn in turns:
        assert stack.ended(turn)["status"] == "done"
    return turns


@pytest.mark.parametrize("mode", ["queue", "steer", "reject"])
def test_two_turns_at_once_to_an_idle_session_are_both_heard_or_refused(fleet: Rig, mode: str) -> None:
    for round_ in range(5):
        session = fleet.session()
        texts = (f"first {round_}", f"second {round_}")
        answers = _at_once(fleet, session, mode, texts)
        turns = _turns(fleet, answers)
        taken = [text for text, answer in zip(texts, answers, strict=True) if answer.status_code == 202]
        for answer in answers:
            if answer.status_code != 202:
                assert mode == "reject"
                refused(answer, 409, "session_busy")
        assert len(taken) == 2 or mode == "reject"
        assert len(turns) == 2 or mode != "queue"
        assert _said(fleet, session) == sorted(taken)
        assert not any(call["overlap"] for call in fleet.provider.ledger(session))


@pytest.mark.parametrize("mode", ["queue", "steer", "reject"])
def test_two_at_once_to_a_session_whose_turn_runs(fleet: Rig, mode: str) -> None:
    session = fleet.session()
    fleet.script(session, [{"text": "slowly", "tools": long_session.calls("{}"), "delay_s": 1.5}, {"text": "now"}])
    running = fleet.send(session, "begin")
    fleet.wait(inflight=1, session=session)

    answers = _at_once(fleet, session, mode, ("one", "two"))

    fleet.ended(running)
    turns = _turns(fleet, answers)
    match mode:
        case "queue":
            assert (len(turns | {running}), _said(fleet, session)) == (3, ["begin", "one", "two"])
        case "steer":
            assert (turns, _said(fleet, session)) == ({running}, ["begin", "one", "two"])
            assert [answer.json()["how"] for answer in answers] == ["steered", "steered"]
        case _:
            assert [refused(answer, 409, "session_busy") for answer in answers]
            assert _said(fleet, session) == ["begin"]
    assert not any(call["overlap"] for call in fleet.provider.ledger(session))


# --- cursors --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cursor", ["999.999.999", "0.0.0", "1.1.1", "-1.2.x", "nonsense", "1.1", "9" * 190, "1.1.1e2"])
def test_a_stale_future_or_foreign_cursor_ends_with_the_answer(fleet: Rig, cursor: str) -> None:
    session = fleet.session()
    fleet.script(
        session, [{"text": "looking", "tools": long_session.calls("{}")}, {"text": "whole " * 20, "chunks": 9}]
    )
    turn = fleet.send(session, "go")
    answer = fleet.ended(turn)["answer"]
    texts: dict[int, str] = {}
    finished = 0
    for _, kind, data in events(fleet.http, turn, cursor):
        if kind == "snapshot":
            texts = {one["step"]: one["text"] for one in data["steps"]}
        elif kind == "text.delta":
            texts[data["step"]] = texts.get(data["step"], "") + data["text"]
        finished += kind == "turn.finished"
    assert (texts[max(texts)], finished) == (answer, 1)


def test_a_stream_that_valkey_forgot_is_told_from_the_rows(fleet: Rig) -> None:
    session = fleet.session()
    fleet.script(
        session, [{"text": "looking", "tools": long_session.calls("{}")}, {"text": "whole " * 20, "chunks": 9}]
    )
    turn = fleet.send(session, "go")
    answer = fleet.ended(turn)["answer"]
    last: Any = [id_ for id_, _, _ in events(fleet.http, turn, None)][2]
    fleet.redis().flushall()
    found = [(kind, data) for _, kind, data in events(fleet.http, turn, last)]
    assert found[-1][0] == "turn.finished"
    assert found[-1][1]["answer"] == answer
    assert watch(fleet.http, turn, random.Random(1)).text == answer

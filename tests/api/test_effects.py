"""What nobody knows whether it happened: a mark in every view, and a figure."""

from __future__ import annotations

import re
import time

import httpx

from api.cli import live, screen
from api.cli.sessions import transcript
from tests.api.hand import Hand
from tests.api.serving import Api, Person
from tests.api.watching import follow


def test_an_unknown_effect_is_marked_in_every_view_and_counted(api: Api, anna: Person, hand: Hand) -> None:
    session = anna.session()
    turn = anna.turn(session)
    fence = hand.claim(turn)
    call = '[{"type":"tool_use","id":"c1","name":"write_file","input":{}}]'
    said = '[{"type":"tool_result","tool_use_id":"c1","content":"outcome unknown","is_error":true}]'
    api.execute(
        "insert into tool_runs (turn, step, ordinal, session, call_id, tool, arguments, digest, repeat, status, fence)"
        " values (%s, 1, 1, %s, 'c1', 'write_file', '{}', 'd', 'once', 'unknown', %s)",
        turn, session, fence,
    )  # fmt: skip
    for ordinal, author, role, content in ((0, "model", "assistant", call), (1, "tool", "user", said)):
        api.execute(
            "insert into messages (session, turn, step, ordinal, author, role, content, fence)"
            " values (%s, %s, 1, %s, %s, %s, %s, %s)",
            session, turn, ordinal, author, role, content, fence,
        )  # fmt: skip
    time.sleep(2.1)  # the figures are remembered for two seconds

    assert anna.get(f"/v1/turns/{turn}").json()["unknown_effects"] == 1
    assert anna.get(f"/v1/sessions/{session}").json()["unknown_effects"] == 1
    (listed,) = (one for one in anna.get("/v1/sessions").json()["items"] if one["id"] == session)
    assert screen.unknown(listed) == "? 1"
    messages = anna.get(f"/v1/sessions/{session}/messages").json()["items"]
    assert [message.get("unknown_effect") for message in messages][-2:] == [None, True]
    assert "  ? write_file: outcome unknown" in list(transcript(messages))
    assert re.search(r"^nightshift_unknown_effects [1-9]", httpx.get(f"{api.url}/metrics").text, re.MULTILINE)

    # Ended by somebody other than its holder, who would have told of each run: the end says how many there are.
    hand.end(turn, "cancelled")
    fold = follow(anna, turn)
    assert fold.end is not None
    assert (fold.end["status"], fold.end["unknown_effects"]) == ("cancelled", 1)


def test_an_unknown_effect_is_told_as_that_and_not_as_a_failure() -> None:
    told = {"tool": "write_file", "status": "unknown", "is_error": True}
    assert live.describe("tool.finished", told) == "? write_file may or may not have happened: its worker was lost"
    assert live.describe("tool.finished", {**told, "status": "failed"}) == "✗ write_file failed"
    parked = live.describe("turn.parked", {"reason": "time", "wait_s": 3.0})
    assert parked.startswith("‖ waiting for a tool run that was lost and may still happen")
    assert screen.unknown({"unknown_effects": 0}) == ""
    assert screen.unknown_sentence({"unknown_effects": 2}).startswith("? 2 of its tool runs")


def test_a_child_with_an_unknown_effect_is_marked_where_its_parent_is_read() -> None:
    child = {"parent_id": "p", "step": 1, "ordinal": 1, "number": 1, "status": "done", "unknown_effects": 2}
    call = {"role": "assistant", "turn_id": "p", "step": 1, "content": [{"type": "tool_use", "id": "c", "name": "x"}]}
    assert any("done · ? 2 unknown" in line for line in transcript([call], [child]))

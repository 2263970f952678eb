"""What nobody knows whether it happened: a mark in every view, and a figure."""

from __future__ import annotations

import re
import time

import httpx

from api.cli.sessions import transcript
from tests.api.hand import Hand
from tests.api.serving import Api, Person


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
    messages = anna.get(f"/v1/sessions/{session}/messages").json()["items"]
    assert [message.get("unknown_effect") for message in messages][-2:] == [None, True]
    assert "  ? write_file: outcome unknown" in list(transcript(messages))
    assert re.search(r"^nightshift_unknown_effects [1-9]", httpx.get(f"{api.url}/metrics").text, re.MULTILINE)

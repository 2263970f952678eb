"""A person with a member's token who wants the house to stand still."""

from __future__ import annotations

import time

import pytest

from api.bodies import parse
from api.wire.asked import SessionAsked, TurnAsked
from shared.errors import Refused


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(b'{"input":[' + b"0," * 2_000_000 + b"0]}", id="zeros where blocks belong"),
        pytest.param(b'{"input":[' + b"[]," * 1_000_000 + b"0]}", id="empty lists"),
        pytest.param(b"{" + b",".join(b'"%d":0' % n for n in range(400_000)) + b"}", id="unknown fields"),
    ],
)
def test_a_body_of_millions_of_values_is_refused_before_they_are_made(raw: bytes) -> None:
    began = time.thread_time()
    with pytest.raises(Refused) as refused:
        parse(raw, TurnAsked)
    assert (refused.value.code, refused.value.status) == ("body_invalid", 422)
    assert time.thread_time() - began < 1.0


def test_a_text_may_hold_as_many_commas_and_brackets_as_it_likes() -> None:
    text = r"a,[{\",\\" * 300_000
    found = parse(b'{"input":"' + text.encode() + b'"}', TurnAsked)
    assert found.input == text.replace(r"\"", '"').replace("\\\\", "\\")
    blocks = b",".join(b'{"type":"text","text":"%d"}' % n for n in range(1000))
    assert len(parse(b'{"input":[' + blocks + b"]}", TurnAsked).input) == 1000
    assert parse(b" ", SessionAsked).title == ""

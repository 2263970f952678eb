"""The head of a request: the same bytes for the same values, and nothing that the provider would refuse."""

from __future__ import annotations

import json

import pytest

from workers.providers.params import Params, text

SESSION = "0198-session"


def test_the_members_stand_in_one_order() -> None:
    assert text(Params("claude-sonnet-5-5", SESSION)) == (
        '"model":"claude-sonnet-5-5","max_tokens":8192,"metadata":{"user_id":"0198-session"},"stream":true'
    )
    assert text(Params("m", SESSION, tool_choice="none")).endswith('"stream":true,"tool_choice":{"type":"none"}')


@pytest.mark.parametrize(
    ("model", "asked", "sent"),
    [
        ("claude-sonnet-5-5", 500_000, 128_000),
        ("claude-haiku-4-5", 100_000, 64_000),
        ("unknown", 100_000, 8_192),
        ("claude-sonnet-5-5", 0, 1),
    ],
)
def test_no_more_output_is_asked_for_than_the_model_can_write(model: str, asked: int, sent: int) -> None:
    assert json.loads("{" + text(Params(model, SESSION, asked)) + "}")["max_tokens"] == sent


def test_odd_names_stay_inside_their_strings() -> None:
    odd = 'm","stream":false,"x":"\ud800\n'
    read = json.loads("{" + text(Params(odd, SESSION)) + "}")
    assert (read["model"], read["stream"]) == (odd, True)

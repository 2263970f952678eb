"""Which names of models are refused before anything is sent, and which are left to who answers to them."""

from __future__ import annotations

from typing import Any

import pytest

from shared.errors import Refused
from shared.providers import named
from shared.settings import Settings

ELSEWHERE = "http://127.0.0.1:4000"


def _settings(**more: Any) -> Settings:
    return Settings.model_validate(more)


@pytest.mark.parametrize(
    ("provider", "model", "near"),
    [
        ("anthropic", "claude-hiaku-5-5", "claude-haiku-5-5"),
        ("anthropic", "CLAUDE-OPUS-55", "claude-opus-5-5"),
        ("anthropic", "gpt-6-sol", "claude-sonnet-5-5"),
        ("openai", "gpt-6-soll", "gpt-6-sol"),
        ("anthropic/eu", "claude-hiaku-5-5", "claude-haiku-5-5"),
    ],
)
def test_a_name_that_a_provider_does_not_have_is_refused_with_the_nearest(provider: str, model: str, near: str) -> None:
    with pytest.raises(Refused, match=near) as refused:
        named.check(_settings(), provider, model)
    assert (refused.value.code, refused.value.status) == ("model_unknown", 422)


@pytest.mark.parametrize(
    ("provider", "model", "more"),
    [
        ("anthropic", "claude-haiku-5-5", {}),
        ("anthropic", "claude-haiku-5-5-20261101", {}),
        ("anthropic", "of-our-own", {"prices": {"anthropic": {"of-our-own": {"input": 1}}}}),
        ("anthropic", "of-our-own", {"model": "of-our-own"}),
        ("openai", "of-our-own", {"fallbacks": "*=openai:of-our-own"}),
        ("anthropic", "whatever", {"provider_base_url": ELSEWHERE, "provider": "anthropic"}),
        ("anthropic", "rehearsal-1", {"rehearsal": True}),
        ("vllm", "whatever", {}),
        ("ollama", "whatever", {}),
        ("openrouter", "somebody/new", {}),
        ("azure", "our-deployment", {"providers": {"azure": {"base_url": "https://we.openai.azure.com/openai/v1"}}}),
    ],
)
def test_what_may_be_there_is_let_through(provider: str, model: str, more: dict[str, Any]) -> None:
    named.check(_settings(**more), provider, model)


def test_a_stand_in_refuses_what_the_provider_that_it_stands_in_for_would() -> None:
    with pytest.raises(Refused):
        named.check(
            _settings(provider_base_url=ELSEWHERE, provider="anthropic", rehearsal=True), "anthropic", "nonsense"
        )

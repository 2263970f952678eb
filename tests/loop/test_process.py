"""Where a worker sends its calls, by its settings."""

from __future__ import annotations

from shared.settings import Settings, load
from workers.process import provider_of


def test_a_key_without_an_address_goes_to_the_provider_itself() -> None:
    provider = provider_of(load({"ANTHROPIC_API_KEY": "sk-test"}))
    assert (provider.base_url, provider.api_key) == ("https://api.anthropic.com", "sk-test")


def test_an_address_that_was_set_is_used_and_needs_no_key() -> None:
    provider = provider_of(Settings(provider_base_url="http://127.0.0.1:9"))
    assert (provider.base_url, provider.api_key) == ("http://127.0.0.1:9", "none")

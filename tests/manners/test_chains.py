"""Which models stand in for which, and where keys are."""

from __future__ import annotations

from pathlib import Path

import pytest

from shared.errors import SettingsError
from shared.providers import chains, resolve
from shared.providers.chains import Link
from shared.providers.configured import ProviderSettings
from shared.providers.credentials import credentials
from shared.settings import Settings, load
from workers.conversing import too_large

OWN = Link("anthropic", "claude-sonnet-5-5")


def test_a_chain_begins_with_the_sessions_own_model_and_has_each_link_once() -> None:
    told = "night=openai:gpt-6-luna>ollama:qwen3:8b>anthropic:claude-sonnet-5-5,*=openrouter:x/y"
    settings = Settings(fallbacks=told)
    night = (OWN, Link("openai", "gpt-6-luna"), Link("ollama", "qwen3:8b"))
    assert chains.chain(settings, "night", OWN) == night
    assert chains.chain(settings, "default", OWN) == (OWN, Link("openrouter", "x/y"))
    assert chains.chain(Settings(), "default", OWN) == (OWN,)


def test_summaries_have_a_chain_of_their_own() -> None:
    assert chains.auxiliary("") == (None,)
    assert chains.auxiliary("openai:gpt-6-luna > session") == (Link("openai", "gpt-6-luna"), None)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("FALLBACKS", "openai:gpt-6"),
        ("FALLBACKS", "*=gpt-6"),
        ("FALLBACKS", "*=nobody:gpt-6"),
        ("FALLBACKS", "*=openai:"),
        ("FALLBACKS", "*=openai:a,*=openai:b"),
        ("FALLBACKS", "*=azure:gpt-6"),
        ("AUXILIARY", "luna"),
        ("PROVIDERS", '{"nobody": {}}'),
        ("PROVIDERS", '{"openai": {"order": "random"}}'),
        ("PROVIDERS", '{"openai": {"concurrency": 0}}'),
        ("PROVIDERS", '{"openai": {"base_url": "http://198.51.100.7.example.com"}}'),
        ("PROVIDERS", "{"),
    ],
)
def test_what_no_turn_could_speak_to_stops_the_start(name: str, value: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError):
        load({"NIGHTSHIFT_HOME": str(tmp_path), f"NIGHTSHIFT_{name}": value})


def test_two_of_a_kind_have_names_of_their_own_and_one_declaration() -> None:
    settings = Settings(providers={"anthropic/eu": ProviderSettings(base_url="https://eu.example.com")})
    found = resolve.of_provider(settings, "anthropic/eu")
    assert (found.name, found.base_url, found.prices) == ("anthropic/eu", "https://eu.example.com", "anthropic")
    assert resolve.limits(settings, "anthropic/eu", "claude-sonnet-5-5").window == 1_000_000


def test_keys_are_read_in_their_order_each_once_and_shown_by_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "keys" / "anthropic"
    folder.mkdir(parents=True)
    for name, value, mode in (("a", "file-a\n", 0o600), ("b", "one\n", 0o600), ("open", "seen by all", 0o644)):
        (folder / name).write_text(value)
        (folder / name).chmod(mode)
    settings = Settings(home=tmp_path, provider_key="one")
    environ = {"ANTHROPIC_API_KEY": "one", "ANTHROPIC_API_KEY_2": "two", "OPENAI_API_KEY": "other"}
    found = credentials(settings, "anthropic", environ)
    assert [(one.name, one.key) for one in found] == [("main", "one"), ("anthropic_api_key_2", "two"), ("a", "file-a")]
    assert not any(one.key in f"{one!r} {one.id}" for one in found)
    assert [one.key for one in credentials(settings, "openai", environ)] == ["other"]
    assert credentials(settings, "mistral", environ) == ()
    assert [one.key for one in credentials(settings, "ollama", environ)] == ["none"]


def test_a_key_that_was_exchanged_is_another_key(tmp_path: Path) -> None:
    first = credentials(Settings(home=tmp_path, provider_key="x"), "anthropic", {})
    second = credentials(Settings(home=tmp_path, provider_key="y"), "anthropic", {})
    assert first[0].id != second[0].id
    assert first[0].id == credentials(Settings(home=tmp_path, provider_key="x"), "anthropic", {})[0].id


def test_what_is_too_large_to_send_is_named_by_place_kind_and_size_and_by_none_of_its_words() -> None:
    body = b'{"messages":[{"role":"user","content":[{"type":"text","text":"%s"},{"type":"text","text":"b"}]},' % (
        b"secret" * 500_000
    )
    body += b'{"role":"user","content":"%s"}]}' % (b"x" * 1_000_000)
    said = too_large(body)
    assert "text 0 of message 0 (3.0 MB), text 0 of message 1 (1.0 MB)" in said
    assert "secret" not in said

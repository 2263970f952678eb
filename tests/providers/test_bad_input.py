"""Bad input by name: keys, addresses, usage. What a server sends that is broken stands in `faulty`."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from shared.errors import SettingsError
from shared.providers import resolve
from shared.providers.resolve import check_key, checked_url
from shared.providers.table import TABLE
from shared.request.dialect import Wire
from tests.providers.caller import KEY, client_of
from tests.providers.raw_server import answering, refusing, serving
from workers.providers import answered_by, listing, prices, wire
from workers.providers.failures import classify
from workers.providers.replies import Usage

AT = datetime(2026, 11, 30, tzinfo=UTC)
KEYS = {
    # the provider that is called: a key of somebody else's
    "openai": "sk-ant-api03-0123", "anthropic": "sk-proj-0123", "openrouter": "AIzaSy0123", "gemini": "sk-or-v1-0123",
}  # fmt: skip


@pytest.mark.parametrize("name", [name for name, one in TABLE.items() if one.hosts and one.base_url])
@pytest.mark.parametrize("key", ["", " ", "\t"])
def test_a_provider_that_asks_for_a_key_is_not_called_without_one(name: str, key: str) -> None:
    with pytest.raises(SettingsError, match="NIGHTSHIFT_PROVIDER_KEY"):
        check_key(key, TABLE[name])


@pytest.mark.parametrize("name", list(KEYS))
def test_a_key_of_another_provider_is_refused_and_shown_to_nobody(name: str) -> None:
    with pytest.raises(SettingsError, match="NIGHTSHIFT_PROVIDER_KEY") as caught:
        check_key(KEYS[name], TABLE[name])
    assert "0123" not in str(caught.value)
    check_key(KEYS[name], replace(TABLE[name], base_url="http://127.0.0.1:9"))  # a proxy may take any key


@pytest.mark.parametrize("key", ["a\nb", "a\r\nX-Evil: 1", "schlüssel", "a\x00b", "a b\x7f"])
def test_a_key_that_no_header_can_carry_is_refused_before_it_is_sent(key: str) -> None:
    with pytest.raises(SettingsError, match="NIGHTSHIFT_PROVIDER_KEY") as caught:
        wire.open_client(wire.Provider("http://127.0.0.1:9", key, "chat_completions"))
    assert key not in str(caught.value)


@pytest.mark.parametrize("kind", ["anthropic", "chat_completions", "responses", "bedrock_converse"])
def test_a_key_that_has_expired_is_one_call_and_a_sentence_without_the_key(kind: str) -> None:
    said = f"Incorrect API key provided: {KEY}. It has expired."
    with serving(refusing(401, "authentication_error", said)) as server, client_of(server.url, kind) as client:
        with pytest.raises(wire.CallFailed) as caught:
            wire.stream(client, b"{}", sink=lambda _: None, cancel=wire.Cancel())
        assert len(server.requests) == 1
    recovery = classify(caught.value)
    assert (recovery.kind, recovery.retry, recovery.fatal, recovery.refresh) == ("auth", False, True, True)
    assert KEY not in recovery.why + caught.value.message + caught.value.said


@pytest.mark.parametrize("kind", ["anthropic", "chat_completions", "responses", "bedrock_converse"])
def test_a_redirect_is_not_followed_so_the_key_goes_nowhere_else(kind: str) -> None:
    with serving(refusing(500, "api_error", "never asked")) as elsewhere:
        away = answering(307, b"", b"location: " + f"{elsewhere.url}/v1/messages".encode())
        with serving(away) as server, client_of(server.url, kind) as client, pytest.raises(wire.CallFailed) as caught:
            wire.stream(client, b"{}", sink=lambda _: None, cancel=wire.Cancel())
        assert elsewhere.requests == []
    assert classify(caught.value).kind == "redirected"
    assert "NIGHTSHIFT_PROVIDER_BASE_URL" in classify(caught.value).why


@pytest.mark.parametrize(
    ("told", "wanted", "url"),
    [
        ("https://proxy.example.com/openai/", Wire.CHAT, "https://proxy.example.com/openai"),
        ("https://proxy.example.com/openai/v1/chat/completions/", Wire.CHAT, "https://proxy.example.com/openai/v1"),
        ("https://api.example.com///", Wire.CHAT, "https://api.example.com/v1"),
        ("https://api.example.com/v1/responses", Wire.RESPONSES, "https://api.example.com/v1"),
        ("https://api.example.com/v1/messages", Wire.ANTHROPIC, "https://api.example.com"),
        ("https://api.example.com/v1/", Wire.ANTHROPIC, "https://api.example.com"),
        (" https://api.example.com ", Wire.ANTHROPIC, "https://api.example.com"),
        ("http://localhost:8080", Wire.CHAT, "http://localhost:8080/v1"),
        ("http://[::1]:8080/", Wire.CHAT, "http://[::1]:8080/v1"),
        ("http://vllm:8000/v1", Wire.CHAT, "http://vllm:8000/v1"),
    ],
)
def test_an_address_with_a_path_a_slash_or_an_endpoint_is_the_address_without(
    told: str, wanted: Wire, url: str
) -> None:
    assert checked_url(told, wanted) == url


@pytest.mark.parametrize("host", ["api.openai.com", "8.8.8.8", "[2001:4860:4860::8888]", "example.com:8080"])
def test_plain_http_to_a_public_host_is_refused_whatever_the_provider(host: str) -> None:
    for name in ("openai", "custom", "anthropic", "llama.cpp"):
        with pytest.raises(SettingsError, match="https"):
            resolve.resolve(kind=None, provider=name, base_url=f"http://{host}/v1", model="m")


USAGE = Usage(1_000, 1_000)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("gpt-5.5", "gpt-5.5-2026-08-01"), ("claude-sonnet-5-5", "claude-sonnet-5-5-20260901"),
        ("anthropic/claude-sonnet-5-5", "claude-sonnet-5-5"), ("smollm2-135m", "/models/smollm2-135m.gguf"),
        ("claude-sonnet-5-5", "claude-sonnet-5-5"), ("m", ""),
    ],
)  # fmt: skip
def test_the_snapshot_or_the_maker_in_a_name_makes_no_other_model(asked: str, told: str) -> None:
    assert not answered_by.is_other(asked, told)


def test_usage_of_another_model_costs_the_dearer_of_the_two_and_says_who_answered() -> None:
    def cost(asked: str, told: str | None) -> prices.Cost:
        return answered_by.price(asked, told, USAGE, AT, provider="anthropic")

    sonnet, opus = (prices.price(name, USAGE, AT).usd for name in ("claude-sonnet-5-5", "claude-opus-5-5"))
    assert sonnet is not None
    assert opus is not None
    assert opus > sonnet
    assert cost("claude-sonnet-5-5", "claude-opus-5-5").usd == opus
    assert "claude-opus-5-5 answered" in cost("claude-sonnet-5-5", "claude-opus-5-5").source
    assert cost("claude-opus-5-5", "claude-sonnet-5-5").usd == opus
    assert cost("claude-sonnet-5-5", "nobody-knows").usd == sonnet
    assert cost("nobody-knows", "claude-opus-5-5").usd == opus
    assert cost("nobody-knows", "nobody-either").usd is None
    assert cost("claude-sonnet-5-5", None) == cost("claude-sonnet-5-5", "claude-sonnet-5-5-20260901")
    assert cost("claude-sonnet-5-5", None).usd == sonnet > Decimal(0)


@pytest.mark.parametrize(("status", "there"), [(200, True), (404, True), (501, True), (500, False), (503, False)])
def test_a_provider_that_lists_no_models_is_there_all_the_same(status: int, there: bool) -> None:
    with serving(answering(status, b"{}")) as server, client_of(server.url, "chat_completions") as client:
        assert listing.alive(client) is there

"""Dollars: each bucket at its rate, unknown rather than wrong, and never above what was reserved."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import genai_prices
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.request.marked import Ttl
from workers.providers import models, prices
from workers.providers.replies import Usage

AT = datetime(2026, 11, 30, tzinfo=UTC)
MILLION = 1_000_000


@pytest.mark.parametrize(
    ("model", "usage", "usd"),
    [
        ("claude-sonnet-5-5", Usage(input=1_000, output=100), "0.003"),
        ("claude-sonnet-5-5", Usage(650, 10, 100, 150, 50), "0.001985"),
        ("claude-opus-5-5", Usage(cache_read=MILLION), "0.2"),
        ("claude-opus-5-5", Usage(cache_write_5m=MILLION), "5"),
        ("claude-opus-5-5", Usage(cache_write_1h=MILLION), "8"),
        ("claude-fable-5-2", Usage(output=MILLION), "40"),
        ("claude-haiku-5-5", Usage(input=100_000), "0.01"),
        ("claude-haiku-5-5", Usage(input=100_001), "0.0500005"),
        ("claude-haiku-5-5", Usage(input=1, cache_read=100_000, output=MILLION), "2.5050005"),
        ("claude-sonnet-4-5", Usage(input=200_000), "0.6"),
        ("claude-sonnet-4-5", Usage(input=200_001), "1.200006"),
        ("claude-sonnet-5-5", Usage(), "0"),
        ("claude-haiku-4-5-20251001", Usage(input=MILLION), "1"),
    ],
)
def test_each_bucket_has_its_rate(model: str, usage: Usage, usd: str) -> None:
    cost = prices.price(model, usage, AT)
    assert cost.usd == Decimal(usd)
    assert cost.source == "genai-prices 0.2.3 anthropic 2026-11-30"


@pytest.mark.parametrize("model", ["", "no-such-model", "gpt-5.5", "\x00", "claude-sonnet-6"])
def test_an_unknown_model_costs_an_unknown_sum_never_nothing(model: str) -> None:
    assert prices.price(model, Usage(1, 1), AT).usd is None
    assert prices.worst(model, 1, 1, at=AT) is None


def test_tokens_in_a_bucket_without_a_rate_make_the_whole_cost_unknown() -> None:
    assert prices.price("claude-2", Usage(10, 10), AT).usd is not None
    cost = prices.price("claude-2", Usage(10, 10, cache_write_1h=1), AT)
    assert cost.usd is None
    assert "cache_write_1h" in cost.source
    assert prices.worst("claude-2", 10, 10, at=AT) is None


def test_a_call_without_usage_costs_an_unknown_sum() -> None:
    assert prices.price("claude-sonnet-5-5", None, AT) == prices.Cost(None, "the provider told no usage")


@pytest.mark.parametrize(
    ("model", "prompt", "output", "ttl", "usd"),
    [
        ("claude-sonnet-5-5", MILLION, MILLION, Ttl.HOUR, "14"),
        ("claude-sonnet-5-5", MILLION, MILLION, Ttl.MINUTES, "12.5"),
        ("claude-haiku-5-5", 100_000, 0, Ttl.HOUR, "0.02"),
        ("claude-haiku-5-5", 100_001, 0, Ttl.HOUR, "0.100001"),
        ("claude-haiku-5-5", 100_001, 1_000, Ttl.MINUTES, "0.065000625"),
    ],
)
def test_the_worst_case_is_the_dearest_bucket(model: str, prompt: int, output: int, ttl: Ttl, usd: str) -> None:
    assert prices.worst(model, prompt, output, at=AT, ttl=ttl) == Decimal(usd)


PRICED = sorted(set(models.TABLE) - {"claude-mythos-5", "claude-mythos-5-1"})
"""genai-prices 0.2.3 does not know the other two: their cost is unknown."""
TOKENS = st.integers(0, 300_000)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(PRICED), st.builds(Usage, TOKENS, TOKENS, TOKENS, TOKENS, TOKENS))
def test_no_bill_is_above_what_was_reserved_for_its_size(model: str, usage: Usage) -> None:
    cost = prices.price(model, usage, AT).usd
    reserved = prices.worst(model, usage.prompt, usage.output, at=AT)
    assert cost is not None
    assert reserved is not None
    assert cost <= reserved


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(PRICED), st.builds(Usage, TOKENS, TOKENS, TOKENS, TOKENS, TOKENS))
def test_our_sum_is_that_of_the_package(model: str, usage: Usage) -> None:
    inclusive = genai_prices.Usage(
        input_tokens=usage.prompt,
        cache_read_tokens=usage.cache_read,
        cache_write_tokens=usage.cache_write_5m + usage.cache_write_1h,
        cache_write_1h_tokens=usage.cache_write_1h,
        output_tokens=usage.output,
    )
    theirs = genai_prices.calc_price(inclusive, model, provider_id="anthropic", genai_request_timestamp=AT)
    assert prices.price(model, usage, AT).usd == theirs.total_price


@pytest.mark.parametrize("model", PRICED)
def test_every_model_whose_size_is_known_has_a_price_and_the_same_window_there(model: str) -> None:

    found = genai_prices.calc_price(genai_prices.Usage(input_tokens=1), model, provider_id="anthropic").model
    assert found.context_window == models.window(model)


def test_a_model_that_is_not_known_gets_small_limits_that_say_so() -> None:
    assert models.limits("mystery") == models.Limits(200_000, 8_192, known=False)
    assert models.window("claude-sonnet-5-5-20260901") == 1_000_000
    assert models.max_output("claude-haiku-4-5") == 64_000

"""Proves the bill of the prompt cache against the examples of the provider's documentation."""

from typing import Any

import pytest
from genai_prices import Usage, calc_price

from deploy.rehearsal import prefix as prefixes
from deploy.rehearsal.cache import Bill, PromptCache
from deploy.rehearsal.ledger import cost_nanos
from deploy.rehearsal.models import MODELS, NANOS_PER_DOLLAR
from deploy.rehearsal.prefix import Prefix
from deploy.rehearsal.seen import know

SONNET = MODELS["claude-sonnet-5-5"]
CONTEXTS = (b"t", b"s", b"m")
# The public list does not know these two; the provider prices them like their siblings.
PRICED_AS = {"claude-mythos-5": "claude-fable-5", "claude-mythos-5-1": "claude-fable-5-1"}
LONG = "the quick brown fox jumps over the lazy dog " * 20


def request(count: int, marks: dict[int, str], texts: dict[int, str] | None = None) -> Prefix:
    """`count` blocks in one message, marked at these positions (counted from one)."""
    blocks: list[dict[str, Any]] = []
    for at in range(1, count + 1):
        block: dict[str, Any] = {"type": "text", "text": (texts or {}).get(at, f"block {at}: {LONG}")}
        if at in marks:
            block["cache_control"] = {"type": "ephemeral", "ttl": marks[at]}
        blocks.append(block)
    body: dict[str, Any] = {"model": SONNET.name, "messages": [{"role": "user", "content": blocks}]}
    return prefixes.build(b"", body, [know(0, body["messages"][0])], SONNET)


def call(cache: PromptCache, prefix: Prefix, at: float, begins: bool = True) -> Bill:
    bill, pending = cache.open(prefix, CONTEXTS, at)
    if begins:
        cache.commit(pending)
    assert bill.prompt == prefix.total
    return bill


def test_an_entry_at_15_is_missed_by_a_mark_at_35_and_read_by_a_mark_at_34() -> None:
    for mark, hit in ((35, 0), (34, 15)):
        cache = PromptCache()
        call(cache, request(15, {15: "5m"}), 0)
        bill = call(cache, request(40, {mark: "5m"}), 1)
        assert bill.hit == hit
        assert bill.read == (request(15, {}).ends[-1] if hit else 0)


def test_after_twenty_positions_the_next_earlier_mark_is_looked_at() -> None:
    cache = PromptCache()
    call(cache, request(5, {5: "5m"}), 0)
    assert call(cache, request(60, {60: "5m"}), 1).hit == 0
    cache = PromptCache()
    call(cache, request(5, {5: "5m"}), 0)
    assert call(cache, request(60, {5: "5m", 60: "5m"}), 1).hit == 5
    assert call(cache, request(60, {24: "5m", 60: "5m"}), 2).hit == 60


def test_an_entry_is_written_only_at_a_mark() -> None:
    cache = PromptCache()
    call(cache, request(10, {10: "5m"}), 0)
    assert call(cache, request(9, {9: "5m"}), 1).hit == 0
    assert call(cache, request(12, {}), 2).read == 0


def test_without_marks_everything_is_plain_input() -> None:
    prefix = request(30, {})
    assert call(PromptCache(), prefix, 0) == Bill(input=prefix.total, read=0, write_5m=0, write_1h=0, hit=0)


def test_the_buckets_are_disjoint_and_input_is_only_what_follows_the_last_mark() -> None:
    cache = PromptCache()
    prefix = request(20, {10: "5m"})
    first = call(cache, prefix, 0)
    assert first == Bill(prefix.total - prefix.ends[9], 0, prefix.ends[9], 0, 0)
    again = call(cache, request(20, {10: "5m", 20: "5m"}), 1)
    assert again == Bill(prefix.total - prefix.ends[19], prefix.ends[9], prefix.ends[19] - prefix.ends[9], 0, 10)


def test_with_both_lives_the_hour_pays_from_the_hit_to_its_mark_and_five_minutes_the_rest() -> None:
    cache = PromptCache()
    call(cache, request(4, {4: "1h"}), 0)
    prefix = request(20, {4: "1h", 10: "1h", 16: "5m"})
    bill = call(cache, prefix, 1)
    end = prefix.ends
    assert bill == Bill(
        input=prefix.total - end[15], read=end[3], write_1h=end[9] - end[3], write_5m=end[15] - end[9], hit=4
    )


def test_an_hour_mark_inside_what_was_read_bills_nothing() -> None:
    cache = PromptCache()
    call(cache, request(10, {10: "5m"}), 0)
    prefix = request(20, {4: "1h", 10: "5m", 16: "5m"})
    end = prefix.ends
    assert call(cache, prefix, 1) == Bill(
        input=prefix.total - end[15], read=end[9], write_1h=0, write_5m=end[15] - end[9], hit=10
    )


def test_an_entry_lives_its_time_from_the_start_of_the_request_that_wrote_it() -> None:
    for ttl, life in (("5m", 300), ("1h", 3600)):
        cache = PromptCache()
        call(cache, request(10, {10: ttl}), 1000)
        assert call(cache, request(10, {10: ttl}), 1000 + life, begins=False).hit == 0
        assert call(cache, request(10, {10: ttl}), 1000 + life - 0.1, begins=False).hit == 10


def test_a_read_refreshes_free_and_from_the_start_of_the_reader() -> None:
    cache = PromptCache()
    call(cache, request(10, {10: "5m"}), 0)
    for at in (299, 598, 897):
        bill = call(cache, request(10, {10: "5m"}), at)
        assert (bill.hit, bill.write_5m) == (10, 0)
    assert call(cache, request(10, {10: "5m"}), 1197).hit == 0


def test_an_hour_mark_over_a_living_five_minute_entry_reads_it_and_does_not_lengthen_its_life() -> None:
    cache = PromptCache()
    call(cache, request(10, {10: "5m"}), 0)
    bill = call(cache, request(10, {10: "1h"}), 1)
    assert (bill.hit, bill.write_1h) == (10, 0)
    assert call(cache, request(10, {10: "1h"}), 302).hit == 0


def test_an_entry_cannot_be_read_before_the_reply_that_writes_it_begins() -> None:
    cache = PromptCache()
    prefix = request(10, {10: "5m"})
    first, pending = cache.open(prefix, CONTEXTS, 0)
    second = call(cache, prefix, 0.5, begins=False)
    assert (first.write_5m, second.write_5m) == (prefix.ends[-1], prefix.ends[-1])
    cache.commit(pending)
    assert call(cache, prefix, 1).hit == 10


def test_below_the_model_s_minimum_nothing_is_cached_and_nothing_is_said() -> None:
    cache = PromptCache()
    short = {1: "a few words"}
    assert call(cache, request(1, {1: "5m"}, short), 0).write_5m == 0
    assert call(cache, request(1, {1: "5m"}, short), 1).read == 0
    prefix = request(10, {1: "5m", 10: "5m"}, short)
    assert call(cache, prefix, 2).write_5m == prefix.ends[9]


def test_a_prefix_that_differs_in_one_early_block_is_not_read() -> None:
    cache = PromptCache()
    call(cache, request(10, {10: "5m"}), 0)
    assert call(cache, request(10, {10: "5m"}, {2: LONG + "!"}), 1).hit == 0


def test_the_pinned_pair_reads_across_a_step_of_25_blocks() -> None:
    cache = PromptCache()
    call(cache, request(30, {30: "5m"}), 0)
    assert call(cache, request(55, {30: "5m", 55: "5m"}), 1).hit == 30
    cache = PromptCache()
    call(cache, request(30, {30: "5m"}), 0)
    assert call(cache, request(55, {54: "5m", 55: "5m"}), 1).hit == 0


@pytest.mark.parametrize("name", sorted(MODELS))
@pytest.mark.parametrize("prompt", [90_000, 250_000])
def test_every_listed_model_costs_what_the_public_price_list_says(name: str, prompt: int) -> None:
    model = MODELS[name]
    bill = Bill(input=prompt - 60_000, read=30_000, write_5m=20_000, write_1h=10_000, hit=1)
    listed = calc_price(
        Usage(
            input_tokens=prompt,
            cache_read_tokens=30_000,
            cache_write_tokens=30_000,
            cache_write_1h_tokens=10_000,
            output_tokens=7_000,
        ),
        PRICED_AS.get(name, name),
        provider_id="anthropic",
    )
    assert cost_nanos(model, bill, 7_000) == listed.total_price * NANOS_PER_DOLLAR

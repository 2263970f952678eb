"""What is done about a prompt, as a table; and what holds whatever the numbers are."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.request.marked import Ttl
from workers.providers.prices import Relative
from workers.reduction import meters
from workers.reduction.decide import (
    COMPACT_LEAST,
    FULL,
    WARM_LEAST,
    Compact,
    Decision,
    Keep,
    Prune,
    Rules,
    SetTtl,
    compact_price,
    decide,
    edit_price,
)
from workers.reduction.meters import ASSUMED, Gap
from workers.reduction.sizes import Sizes
from workers.reduction.state import Context

FIVE, HOUR = Ttl.MINUTES, Ttl.HOUR
WARM, COLD, NEVER = Gap(20.0, cold=False), Gap(4_000.0, cold=True), Gap(None, cold=True)
STATE = Context(FIVE, hold_5m=0.0)
"""A burst: the shorter time to live costs nothing to hold."""
SMALL = Sizes(prompt=50_000, room=170_000)
FULL_METER = Context(FIVE, hold_5m=0.0, meter=1e9)
FULL_COMPACT = Context(FIVE, hold_5m=0.0, compact_meter=1e9)
OPUS = Relative(read=0.05, write_5m=1.25, write_1h=2.0, output=5.0)


def sizes(prompt: int, drop: int = 0, *, behind: int = 30_000, room: int = 170_000, middle: int = 0) -> Sizes:
    return Sizes(
        prompt=prompt, room=room, drop=drop, stubs=drop // 1_000, behind=behind, middle=middle, middle_behind=behind
    )


@pytest.mark.parametrize(
    ("state", "gap", "size", "expected"),
    [
        pytest.param(STATE, WARM, SMALL, Keep(), id="nothing to leave out"),
        pytest.param(STATE, WARM, sizes(90_000, 30_000), Keep(), id="warm, the meter is empty"),
        pytest.param(FULL_METER, WARM, sizes(90_000, 30_000), Prune("meter", FIVE), id="warm, the meter is full"),
        pytest.param(FULL_METER, WARM, sizes(90_000, 3_999), Keep(), id="warm, too little to take"),
        pytest.param(
            replace(FULL_METER, regrow_to=90_001), WARM, sizes(90_000, 30_000), Keep(), id="warm, not regrown yet"
        ),
        pytest.param(
            replace(FULL_METER, regrow_to=90_000), WARM, sizes(90_000, 30_000), Prune("meter", FIVE), id="regrown"
        ),
        pytest.param(STATE, COLD, sizes(90_000, 2_000), Prune("cold", FIVE), id="cold, an empty meter"),
        pytest.param(STATE, COLD, sizes(90_000, 1_999), Keep(), id="cold, too little to take"),
        pytest.param(
            replace(STATE, regrow_to=900_000), COLD, sizes(90_000, 9_000), Prune("cold", FIVE), id="cold, no runway"
        ),
        pytest.param(STATE, COLD, sizes(200_000, 20_000), Compact("threshold", FIVE), id="cold, too large after stubs"),
        pytest.param(STATE, COLD, sizes(200_000, 30_001), Prune("cold", FIVE), id="cold, stubs are enough"),
        pytest.param(STATE, NEVER, sizes(200_000), Compact("threshold", FIVE), id="never called, too large"),
        pytest.param(STATE, WARM, sizes(170_000, 25_499), Compact("threshold", FIVE), id="warm, stubs would be tight"),
        pytest.param(STATE, WARM, sizes(170_000, 25_501), Prune("threshold", FIVE), id="warm, stubs make room"),
        pytest.param(STATE, WARM, sizes(169_999, 25_501), Keep(), id="just under the threshold"),
        pytest.param(
            FULL_COMPACT, WARM, sizes(90_000, middle=20_001), Compact("meter", FIVE), id="warm, the summary is paid"
        ),
        pytest.param(FULL_COMPACT, WARM, sizes(90_000, middle=20_000), Keep(), id="a summary of too little"),
        pytest.param(FULL_COMPACT, COLD, sizes(90_000, middle=50_000), Keep(), id="cold, no summary below the line"),
        pytest.param(
            replace(STATE, hold_5m=0.2), COLD, sizes(90_000), SetTtl(HOUR), id="cold, gaps longer than five minutes"
        ),
        pytest.param(replace(STATE, hold_5m=0.2), WARM, sizes(90_000), Keep(), id="up to an hour only when cold"),
        pytest.param(
            replace(FULL_COMPACT, hold_5m=0.2), WARM, sizes(90_000, middle=30_000), Compact("meter", HOUR),
            id="or compacting",
        ),
        pytest.param(replace(STATE, ttl=HOUR), WARM, sizes(90_000), SetTtl(FIVE), id="down at any time"),
        pytest.param(
            replace(STATE, hold_5m=0.2), COLD, sizes(90_000, 9_000), Prune("cold", HOUR), id="both at one boundary"
        ),
    ],
)  # fmt: skip
def test_what_is_done(state: Context, gap: Gap, size: Sizes, expected: Decision) -> None:
    assert decide(state, ASSUMED, gap, size) == expected


@pytest.mark.parametrize(
    ("rules", "state", "gap", "size"),
    [
        pytest.param(Rules(prune_cold=False), STATE, COLD, sizes(90_000, 9_000), id="cold"),
        pytest.param(Rules(prune_warm=False), FULL_METER, WARM, sizes(90_000, 30_000), id="warm"),
        pytest.param(Rules(compact_by_meter=False), FULL_COMPACT, WARM, sizes(90_000, middle=30_000), id="meter"),
        pytest.param(Rules(compact_at_threshold=False), STATE, WARM, sizes(170_000), id="threshold"),
        pytest.param(Rules(compact_at_threshold=False), STATE, NEVER, sizes(200_000), id="cold threshold"),
    ],
)
def test_what_is_turned_off_is_not_done(rules: Rules, state: Context, gap: Gap, size: Sizes) -> None:
    assert decide(state, ASSUMED, gap, size, rules) == Keep()
    assert decide(state, ASSUMED, gap, size) != Keep()


def test_a_prune_is_bought_when_carrying_has_cost_eight_tenths_of_it() -> None:
    size = sizes(90_000, 30_000)
    price = edit_price(STATE, OPUS, size)
    assert price == pytest.approx((1.25 - 0.05) * 30_000 - 0.05 * 30_000 + 0.02 * 30 * (0.05 * 90_000 + 1.25 * 1_000))
    bought = replace(STATE, meter=FULL * price)
    assert decide(bought, OPUS, WARM, size) == Prune("meter", FIVE)
    assert decide(replace(STATE, meter=FULL * price - 1), OPUS, WARM, size) == Keep()
    dearer = replace(bought, ttl=HOUR, hold_5m=1.0)  # an hour's write costs more, so the same meter is not enough
    assert decide(dearer, OPUS, WARM, size) == Keep()


def test_a_summary_pays_for_the_detail_that_it_loses() -> None:
    size = sizes(90_000, middle=30_000)
    assert compact_price(STATE, OPUS, size) == pytest.approx(0.05 * 90_000 + 5 * 3_000 + 1.2 * 30_000 + 100_000)


def test_each_call_adds_what_it_carries_and_each_ping_what_it_carried() -> None:
    state = replace(STATE, warm_pings=3, junk_tokens=5_000)
    moved = meters.carried(state, OPUS, WARM, sizes(90_000, 8_000, middle=28_000))
    assert (moved.meter, moved.compact_meter) == (0.05 * (8_000 + 3 * 5_000), 4 * 0.05 * 20_000)
    assert (moved.junk_tokens, moved.warm_pings) == (8_000, 0)
    cold = meters.carried(state, OPUS, COLD, sizes(90_000, 8_000, middle=28_000))
    assert (cold.meter, cold.compact_meter) == (0.0, 0.0), "nothing was read, so nothing was carried"


@pytest.mark.parametrize(
    ("ttl", "seconds", "cost"),
    [
        (FIVE, 299.9, 0.0), (FIVE, 300.0, 0.1), (FIVE, 579.0, 0.1), (FIVE, 581.0, 0.2), (FIVE, 86_400.0, 1.15),
        (HOUR, 3_599.0, 0.0), (HOUR, 3_600.0, 0.1), (HOUR, 7_180.0, 0.2), (HOUR, 864_000.0, 1.9),
    ],
)  # fmt: skip
def test_what_a_gap_costs_to_hold(ttl: Ttl, seconds: float, cost: float) -> None:
    assert meters.holding(ttl, seconds, ASSUMED) == pytest.approx(cost)


def test_a_holding_cost_has_moved_half_the_way_after_fifteen_calls() -> None:
    state = replace(STATE, hold_5m=0.1, hold_1h=0.0)
    for _ in range(15):
        state = meters.carried(state, ASSUMED, Gap(1_000.0, cold=True), SMALL)
    assert state.hold_5m == pytest.approx((0.1 + 0.3) / 2)
    assert state.hold_1h == 0.0


def test_the_runway_is_what_was_taken_and_never_less_than_the_trigger() -> None:
    much = meters.pruned(FULL_METER, before=100_000, after=70_000, trigger=4_000)
    assert (much.meter, much.regrow_to) == (0.0, 100_000)
    assert meters.pruned(FULL_METER, before=100_000, after=98_000, trigger=4_000).regrow_to == 102_000


counts = st.integers(0, 1_000_000)
costs = st.floats(0, 2)
states = st.builds(
    Context, st.sampled_from(Ttl), meter=st.floats(0, 1e7), compact_meter=st.floats(0, 1e7), junk_tokens=counts,
    wrote_tokens=st.floats(0, 1e5), hold_5m=costs, hold_1h=costs, regrow_to=counts, warm_pings=st.integers(0, 20),
)  # fmt: skip
all_sizes = st.builds(
    Sizes, prompt=counts, room=st.integers(1, 900_000), floor=counts, drop=counts, stubs=st.integers(0, 500),
    behind=counts, middle=counts, middle_behind=counts,
)  # fmt: skip
gaps = st.builds(Gap, st.one_of(st.none(), st.floats(0, 1e6)), st.booleans())
prices = st.builds(Relative, st.floats(0.01, 0.5), st.floats(1, 1.5), st.floats(1.5, 3), st.floats(1, 10))


@given(states, prices, gaps, all_sizes)
def test_nothing_is_pruned_while_warm_for_less_than_four_thousand_tokens(
    state: Context, price: Relative, gap: Gap, size: Sizes
) -> None:
    found = decide(state, price, gap, size)
    if isinstance(found, Prune) and not gap.cold:
        assert size.drop >= WARM_LEAST
        assert size.prompt >= state.regrow_to or size.prompt >= size.room
    if isinstance(found, Compact) and found.cause == "meter":
        assert not gap.cold
        assert size.middle > COMPACT_LEAST
    if isinstance(found, Prune | SetTtl) and found.ttl is HOUR and state.ttl is FIVE:
        assert gap.cold, "an hour is asked for only where nothing is warm"


@given(states, prices, gaps, all_sizes)
def test_the_meters_only_rise_between_two_edits(state: Context, price: Relative, gap: Gap, size: Sizes) -> None:
    moved = meters.carried(state, price, gap, size)
    assert moved.meter >= state.meter
    assert moved.compact_meter >= state.compact_meter
    assert 0 <= moved.hold_5m <= max(state.hold_5m, price.write_5m)
    assert 0 <= moved.hold_1h <= max(state.hold_1h, price.write_1h)


@given(states, counts, counts)
def test_after_a_prune_the_watermark_bars_the_next_until_as_much_has_come_again(
    state: Context, before: int, dropped: int
) -> None:
    after = max(0, before - dropped)
    bar = meters.pruned(state, before=before, after=after, trigger=WARM_LEAST)
    regrown = Sizes(prompt=bar.regrow_to - 1, room=10**9, drop=10**6, stubs=1)
    full = replace(bar, meter=1e12, compact_meter=0.0)
    assert not isinstance(decide(full, ASSUMED, WARM, regrown), Prune)
    assert bar.regrow_to - after >= max(before - after, WARM_LEAST)

"""What the fleet keeps of each key: one table of cases, in Redis and in the memory of a worker alone."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pytest

from shared import stream
from shared.providers.configured import Order
from workers.manners.fleet import Fleet
from workers.manners.terms import ANY, Asked, Limit, Told, Took, Wait, Window

T0 = 1_800_000_000_000.0
FIFTY = Limit(50.0)
EACH_MS = 60_000 / (50 * 0.94)


class Keys:
    """One provider with some keys, asked at times of the test's own."""

    def __init__(self, fleet: Fleet, count: int, limit: Limit, order: Order) -> None:
        mark = uuid.uuid4().hex[:8]
        self.fleet, self.limit = fleet, limit
        self.order: Order = order
        self.provider = f"p{mark}"
        self.names = tuple(f"{self.provider}:{at}" for at in range(count))

    def take(self, at: float, preferred: int | None = None, tokens: float = 0.0) -> Took | Wait:
        asked = Asked(
            self.provider, self.names, (self.limit,) * len(self.names), tokens, T0 + at, self.order, preferred
        )
        return self.fleet.take(asked)

    def tell(self, at: float, told: Told, key: int = 0, *, more: float = 0.0) -> None:
        self.fleet.tell(self.provider, self.names[key], told, T0 + at, ok=True, more=more, strikes=1)

    def cool(self, at: float, told_s: float | None = None, key: int | None = 0) -> tuple[float, int]:
        return self.fleet.cool(self.provider if key is None else self.names[key], T0 + at, told_s, 1.0, 60.0)


Make = Callable[..., Keys]


@pytest.fixture(params=["redis", "alone"])
def keys(request: pytest.FixtureRequest) -> Make:
    client = stream.connect(request.getfixturevalue("redis_url")) if request.param == "redis" else None

    def make(count: int = 1, limit: Limit = FIFTY, order: Order = "fill_first") -> Keys:
        return Keys(Fleet(client, lambda: 1), count, limit, order)

    return make


def calls(keys: Keys, until_ms: float, every_ms: float = 50.0) -> list[float]:
    """When calls go out where somebody always asks, and waits if told to for less than five seconds."""
    at, out = 0.0, list[float]()
    while at < until_ms:
        match keys.take(at):
            case Took(_, wait_ms, _, _):
                out.append(at + wait_ms)
            case Wait(wait_ms):
                at += wait_ms - every_ms
        at += every_ms
    return out


def test_no_minute_holds_more_than_the_limit_and_nine_tenths_of_it_are_used(keys: Make) -> None:
    made = keys()
    made.tell(0, Told(Window(50, 50)))
    out = sorted(one for one in calls(made, 300_000) if one < 300_000)
    fullest = max(sum(begin <= one < begin + 60_000 for one in out) for begin in out)
    assert fullest <= 50
    assert len(out) >= 0.9 * 250


def test_a_key_whose_state_is_new_is_used_at_half_its_rate_until_an_answer_tells_its_limit(keys: Make) -> None:
    made = keys()
    out = [one for one in calls(made, 60_000) if one < 60_000]
    assert 20 <= len(out) <= 25
    made.tell(60_000, Told(Window(50, 49)))
    first = made.take(200_000)
    second = made.take(200_000)
    assert isinstance(first, Took)
    assert isinstance(second, Took)
    assert (first.wait_ms, second.wait_ms) == (0, 0)  # the burst of a key that is known


def test_a_key_without_a_known_limit_is_not_held_back(keys: Make) -> None:
    made = keys(limit=Limit())
    assert [made.take(0) for _ in range(100)] == [Took(0, 0, 0, ANY)] * 100


def test_a_wait_of_more_than_five_seconds_is_not_booked_and_each_sleeper_is_told_another_time(keys: Make) -> None:
    made = keys()
    got = [made.take(0) for _ in range(20)]
    booked = [one.wait_ms for one in got if isinstance(one, Took)]
    later = [one.wait_ms for one in got if isinstance(one, Wait)]
    assert max(booked) <= 5_000
    assert [one.resting for one in got if isinstance(one, Wait)] == [False] * len(later)
    assert later == sorted(later)
    assert len(set(later)) > len(later) // 2


def test_tokens_are_a_limit_of_their_own_and_the_bill_puts_them_right(keys: Make) -> None:
    made = keys(limit=Limit(0.0, 60_000.0))
    made.tell(0, Told(None, Window(60_000, 60_000)))
    assert made.take(0, tokens=9_400) == Took(0, 0, 0, 1)
    asleep = made.take(0)
    assert isinstance(asleep, Wait)  # ten seconds of the limit are used
    made.tell(0, Told(None, Window(60_000, 60_000)), more=-9_400)
    assert isinstance(made.take(0), Took)


def test_what_little_is_left_is_spread_to_the_reset(keys: Make) -> None:
    made = keys()
    made.tell(0, Told(Window(50, 3, 40_000)))
    gaps = [made.take(at) for at in (0, 0, 0)]
    waits = [one.wait_ms for one in gaps if isinstance(one, Took)]
    assert len(waits) < 3 or waits[-1] > 2 * EACH_MS


@pytest.mark.parametrize(
    ("order", "taken"),
    [("fill_first", [0, 0, 0, 0]), ("round_robin", [0, 1, 2, 0]), ("least_used", [0, 1, 2, 0])],
)
def test_the_order_says_which_key_is_taken(keys: Make, order: Order, taken: list[int]) -> None:
    made = keys(3, Limit(1_000.0), order)
    for key in range(3):
        made.tell(0, Told(Window(1_000, 999)), key)
    got = [made.take(at * 1_000) for at in range(4)]
    assert [one.at for one in got if isinstance(one, Took)] == taken


def test_a_session_stays_with_its_key_while_that_has_room(keys: Make) -> None:
    made = keys(3, order="round_robin")
    got = [made.take(at * 10_000, preferred=2) for at in range(3)]
    assert [one.at for one in got if isinstance(one, Took)] == [2, 2, 2]


def test_a_key_that_is_left_alone_is_passed_over_and_probed_once(keys: Make) -> None:
    made = keys(2)
    assert made.cool(0, 7.0) == (7.0, 1)
    assert made.cool(100) == (6.9, 1)  # calls that were out together are one strike
    other = made.take(200)
    assert isinstance(other, Took)
    assert other.at == 1
    made.cool(200, 30.0, key=1)
    assert made.take(1_000) == Wait(6_000, True, 1)
    probe = made.take(7_001)
    assert isinstance(probe, Took)
    assert (probe.at, probe.strikes) == (0, 1)
    assert made.take(7_002) == Wait(1_000, True, 1, probed=True)  # one probe is out
    made.tell(7_500, Told())
    assert isinstance(made.take(20_000), Took)


def test_a_provider_whose_probe_is_out_is_told_from_one_that_is_left_alone(keys: Make) -> None:
    made = keys()
    made.cool(0, 5.0, key=None)
    assert made.take(4_500) == Wait(500, True, 1, probed=False)
    assert made.take(5_001) == Took(0, 0, 1, 1)
    assert made.take(5_002) == Wait(1_000, True, 1, probed=True)
    made.cool(6_000, 5.0, key=None)
    assert made.take(6_001) == Wait(4_999, True, 2, probed=False)


def test_strikes_double_the_rest_and_a_lost_probe_is_followed_by_another(keys: Make) -> None:
    made, at = keys(), 0.0
    rests: list[float] = []
    for _ in range(8):
        rest, strikes = made.cool(at, key=None)
        rests.append(rest)
        at += rest * 1_000 + 1
        probe = made.take(at)
        assert isinstance(probe, Took)
        assert probe.strikes == strikes
    assert rests == [1, 2, 4, 8, 16, 32, 60, 60]
    assert isinstance(made.take(at + 59_000), Wait)
    assert isinstance(made.take(at + 60_001), Took)


def test_a_success_from_before_the_rest_does_not_end_it(keys: Make) -> None:
    made = keys()
    made.cool(0, 30.0)
    made.tell(1_000, Told())
    assert isinstance(made.take(2_000), Wait)


def test_without_redis_each_worker_takes_its_share() -> None:
    made = Keys(Fleet(None, lambda: 5), 1, FIFTY, "fill_first")
    made.tell(0, Told(Window(50, 50)))
    assert 45 <= len([one for one in calls(made, 300_000) if one < 300_000]) <= 50


def test_a_redis_that_is_away_is_not_asked_at_every_call() -> None:
    fleet = Fleet(stream.connect("redis://127.0.0.1:9/0", timeout_s=0.5), lambda: 1)
    made = Keys(fleet, 1, FIFTY, "fill_first")
    assert isinstance(made.take(0), Took)
    made.cool(0, 30.0)
    assert made.take(1_000) == Wait(29_000, True, 1)


def test_after_a_flush_the_limit_that_was_told_is_still_known(redis_url: str) -> None:
    client: Any = stream.connect(redis_url)
    made = Keys(Fleet(client, lambda: 1), 1, Limit(), "fill_first")
    made.tell(0, Told(Window(50, 50)))
    assert isinstance(made.take(0), Took)
    for name in (made.provider, *made.names):
        client.delete(f"nightshift:manners:{name}")
    got = [made.take(1_000) for _ in range(2)]
    assert [one.wait_ms for one in got if isinstance(one, Took)] == [0, pytest.approx(2 * EACH_MS, abs=2)]


def test_every_key_in_redis_has_a_time_to_live(redis_url: str) -> None:
    client: Any = stream.connect(redis_url)
    made = Keys(Fleet(client, lambda: 1), 2, FIFTY, "round_robin")
    made.take(0)
    made.cool(0, key=None)
    made.cool(0, key=1)
    made.tell(10, Told(Window(50, 4)), more=5)
    found = [name for name in (made.provider, *made.names) if client.exists(f"nightshift:manners:{name}")]
    assert len(found) == 3
    assert all(client.pttl(f"nightshift:manners:{name}") > 0 for name in found)

"""What the fleet keeps of each key: one table of cases, in Redis and in the memory of a worker alone."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any, cast

import pytest

from shared import stream
from shared.providers.configured import Order
from workers.manners import kept
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

    def still(
        self, at: float, booked: float | None = None, *, probe: bool = False, waited: bool = False
    ) -> Took | Wait:
        since = 0.0 if booked is None else T0 + booked
        asked = Asked(self.provider, self.names[:1], (self.limit,), 0.0, T0 + at, booked_ms=since, waited=waited)
        return self.fleet.still(asked, probe=probe)

    def beside(self, fleet: Fleet) -> Keys:
        """The same keys, from another worker."""
        made = Keys(fleet, 0, self.limit, self.order)
        made.provider, made.names = self.provider, self.names
        return made

    def flush(self, client: Any) -> None:
        for name in (self.provider, *self.names):
            client.delete(f"nightshift:manners:{name}")

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


def test_a_limit_that_is_told_holds_from_the_next_call_on(keys: Make) -> None:
    made = keys(limit=Limit())
    assert made.take(0) == Took(0, 0, 0, ANY)
    made.tell(0, Told(Window(50, 49)))
    got = [made.take(0) for _ in range(4)]
    assert [one.wait_ms > 0 for one in got if isinstance(one, Took)] == [False, False, True, True]


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


def test_a_probe_of_a_key_that_is_merely_slow_holds_up_nobody_for_long(keys: Make) -> None:
    made = keys()
    made.cool(0, 1.0)
    for at in (1_001, 16_002, 31_003):
        assert isinstance(made.take(at), Took)
        assert isinstance(made.take(at + 14_999), Wait)


def test_a_probe_that_waits_for_its_turn_is_not_shut_out_by_itself(keys: Make) -> None:
    made = keys()
    made.tell(0, Told(Window(50, 50)))
    assert all(isinstance(made.take(0), Took) for _ in range(4))
    made.cool(100, 1.0, key=None)
    probe = made.take(1_101)
    assert isinstance(probe, Took)
    assert probe.strikes == 1
    assert probe.wait_ms > 0
    at = 1_101 + probe.wait_ms
    assert isinstance(made.still(at), Wait)  # anybody else waits for what it has to say
    assert isinstance(made.still(at, probe=True), Took)
    made.cool(at, 30.0)  # a call that was out before it failed too
    assert isinstance(made.still(at + 1, probe=True), Wait)


def test_what_was_booked_before_a_rest_does_not_stand_and_the_first_call_after_it_waits_for_none_of_it(
    keys: Make,
) -> None:
    made = keys()
    made.tell(0, Told(Window(50, 50)))
    booked = [made.take(0) for _ in range(5)]
    assert [one.wait_ms > 0 for one in booked if isinstance(one, Took)] == [False, False, True, True, True]
    made.cool(100, 1.0)
    assert made.take(1_101) == Took(0, 0, 1, 1)
    made.tell(1_200, Told())
    assert isinstance(made.still(1_201, booked=0), Wait)
    assert made.still(1_201, booked=1_101) == Took(0, 0, 0, 0)


def test_where_a_window_has_nothing_left_what_is_booked_is_held_back_each_call_by_another_time(keys: Make) -> None:
    made = keys()
    made.tell(0, Told(Window(50, 50)))
    assert all(isinstance(made.take(0), Took) for _ in range(4))
    made.tell(500, Told(Window(50, 0, 2_000)))
    assert made.still(700, booked=0) == Wait(1_800, False)
    second = made.still(800, booked=0)
    assert isinstance(second, Wait)
    assert (second.wait_ms, second.resting) == (pytest.approx(1_700 + EACH_MS, abs=1), False)
    assert made.still(2_500, booked=0, waited=True) == Took(0, 0, 0, 0)
    later = made.take(900)
    assert later.wait_ms >= 1_600 + 2 * EACH_MS - 1


def test_a_bucket_that_has_nothing_left_fills_by_a_call_at_a_time(keys: Make) -> None:
    made = keys()
    made.tell(0, Told(Window(50, 50)))
    made.tell(500, Told(Window(50, 0, 59_500)))
    assert made.still(600, booked=100) == Took(0, 0, 0, 0)
    assert isinstance(made.take(600), Took)


def test_a_probe_that_will_not_go_out_is_followed_by_another_at_once(keys: Make) -> None:
    made = keys()
    made.cool(0, 1.0)
    made.cool(0, 1.0, key=None)
    assert isinstance(made.take(1_001), Took)
    assert isinstance(made.take(1_002), Wait)
    made.fleet.release(made.names[0], made.provider)
    again = made.take(1_003)
    assert isinstance(again, Took)
    assert again.strikes == 1
    assert isinstance(made.take(1_004), Wait)


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
    made.flush(client)
    got = [made.take(1_000) for _ in range(2)]
    waits = [one.wait_ms for one in got if isinstance(one, Took)]
    assert waits == [pytest.approx(EACH_MS - 1_000, abs=2), pytest.approx(3 * EACH_MS - 1_000, abs=2)]


def test_after_a_flush_no_call_is_due_before_what_any_worker_had_booked(redis_url: str) -> None:
    client: Any = stream.connect(redis_url)
    first = Keys(Fleet(client, lambda: 2), 1, FIFTY, "fill_first")
    first.tell(0, Told(Window(50, 50)))
    second = first.beside(Fleet(client, lambda: 2))
    assert isinstance(first.take(0), Took)
    assert all(isinstance(second.take(0), Took) for _ in range(2))
    first.flush(client)
    assert isinstance(first.still(10), Took)  # it had seen one booking, and says so
    late = second.take(20)  # it knows of three
    assert isinstance(late, Took)
    assert late.wait_ms == pytest.approx(3 * EACH_MS - 20, abs=2)
    after = first.take(30)
    assert isinstance(after, Wait)  # half the rate: two spaces behind the three, for no answer has come since


def test_a_flush_ends_no_rest_that_a_worker_knows_of_and_forgets_no_strike(redis_url: str) -> None:
    client: Any = stream.connect(redis_url)
    first = Keys(Fleet(client, lambda: 2), 1, FIFTY, "fill_first")
    second = first.beside(Fleet(client, lambda: 2))
    first.cool(0, 30.0)
    first.flush(client)
    assert first.take(10) == Wait(29_990, True, 1)
    assert second.take(20) == Wait(29_980, True, 1)
    first.flush(client)
    assert second.take(30) == Wait(29_970, True, 1)
    probe = first.take(30_001)
    assert isinstance(probe, Took)
    assert probe.strikes == 1
    assert isinstance(second.take(30_002), Wait)
    first.tell(30_500, Told())
    assert isinstance(second.take(30_501), Took)
    first.flush(client)
    fresh = second.take(31_000)
    assert isinstance(fresh, Took)
    assert fresh.strikes == 0  # what it remembers of the rest is over since it asked last


def test_a_worker_that_loses_redis_goes_on_from_what_it_had_seen_there(redis_url: str) -> None:
    client: Any = stream.connect(redis_url)
    fleet = Fleet(client, lambda: 1)
    made = Keys(fleet, 1, FIFTY, "fill_first")
    made.tell(0, Told(Window(50, 50)))
    assert all(isinstance(made.take(0), Took) for _ in range(2))
    lost = made.beside(Fleet(stream.connect("redis://127.0.0.1:9/0", timeout_s=0.5), lambda: 1))
    made.fleet = _away(fleet)
    got = made.take(10)
    assert isinstance(got, Took)
    assert got.wait_ms == pytest.approx(2 * EACH_MS - 10, abs=2)
    assert lost.take(10) == Took(0, 0, 0, 1)  # who has seen nothing


def test_a_worker_that_loses_redis_twice_knows_what_it_had_seen_in_between(redis_url: str) -> None:
    fleet = Fleet(stream.connect(redis_url), lambda: 1)
    made = Keys(fleet, 1, FIFTY, "fill_first")
    made.tell(0, Told(Window(50, 50)))
    assert isinstance(made.take(0), Took)
    _away(fleet)
    assert isinstance(made.take(1_000), Took)
    fleet._away_until = 0.0
    made.cool(2_000, 30.0)
    _away(fleet)
    assert made.take(3_000) == Wait(29_000, True, 1)
    made.tell(32_001, Told())  # what was seen there is no news a second time
    assert made.take(32_002) == Took(0, 0, 0, 1)


def _away(fleet: Fleet) -> Fleet:
    """As after a call that found no Redis."""
    fleet._away_until = float("inf")  # its own time-out would be five seconds
    return fleet


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


def test_keys_that_were_exchanged_are_forgotten_and_those_in_use_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "MOST_KEYS", 10)
    made = Keys(Fleet(None, lambda: 1), 1, Limit(6_000.0), "fill_first")
    first = made.names[0]
    made.tell(0, Told(Window(6_000, 6_000)))
    for number in range(50):
        for name in (first, f"exchanged:{number}"):
            made.names = (name,)
            assert isinstance(made.take(number), Took)
            made.tell(number, Told(Window(6_000, 6_000)))
    known = [value for owner in (made.fleet, made.fleet._alone) for value in vars(owner).values()]
    sizes = [len(cast("dict[object, object]", one)) for one in known if isinstance(one, dict)]
    assert len(sizes) == 6
    assert max(sizes) == 10
    assert first in made.fleet._limits

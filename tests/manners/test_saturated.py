"""Three workers that always have more to ask, one key, fifty calls a minute: the fleet's state in a real Redis, the
rehearsal provider's own limits, and a clock of the test's own."""

from __future__ import annotations

from typing import Any

import pytest

from shared import stream
from tests.manners.world import T0, WORKERS, World
from workers.manners import fleet as of_fleet
from workers.manners.fleet import Fleet
from workers.manners.terms import PROVIDER_PROBE_MS

TEN_MINUTES = 600.0
USED = 0.9
MOST_REFUSED = 2


@pytest.fixture(autouse=True)
def _no_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_fleet, "BLOCK_S", 0.0)  # a second of the real clock, in which minutes pass here


@pytest.fixture
def client(redis_url: str) -> Any:
    return stream.connect(redis_url)


def shared(client: Any) -> list[Fleet]:
    return [Fleet(client, lambda: WORKERS) for _ in range(WORKERS)]


def in_memory() -> list[Fleet]:
    """One memory for all three: what Redis holds, without its round trips."""
    return [Fleet(None, lambda: 1)] * WORKERS


def flush(client: Any, world: World) -> None:
    for name in world.names:
        client.delete(f"nightshift:manners:{name}")


@pytest.mark.parametrize("way", ["bucket", "window"])
def test_ten_minutes_bring_at_most_two_refusals_and_use_nine_tenths_of_the_limit_and_so_after_a_flush(
    client: Any, way: str
) -> None:
    world, begin = World(shared(client), way, 0), T0
    flush(client, world)
    for _ in ("a start", "a flush"):
        world.until(begin + TEN_MINUTES)
        used, refused = world.between(begin, begin + TEN_MINUTES)
        assert refused <= MOST_REFUSED
        assert used >= USED
        flush(client, world)
        begin += TEN_MINUTES


def test_a_flush_a_minute_changes_neither(client: Any) -> None:
    world = World(shared(client), "window", 1)
    for minute in range(1, 11):
        world.until(T0 + 60.0 * minute)
        flush(client, world)
    used, refused = world.between(T0, T0 + TEN_MINUTES)
    assert refused <= MOST_REFUSED
    assert used >= USED


@pytest.mark.parametrize("way", ["bucket", "window"])
@pytest.mark.parametrize("seed", range(3))
def test_calls_that_are_late_bring_no_more_refusals(way: str, seed: int) -> None:
    world = World(in_memory(), way, seed, late_s=2.0)
    world.until(T0 + TEN_MINUTES)
    used, refused = world.between(T0, T0 + TEN_MINUTES)
    assert refused <= MOST_REFUSED
    assert used >= USED


def test_clocks_that_differ_by_a_second_bring_no_more_refusals() -> None:
    world = World(in_memory(), "window", 4, skew_s=(-0.5, 0.0, 0.5))
    world.until(T0 + TEN_MINUTES)
    used, refused = world.between(T0, T0 + TEN_MINUTES)
    assert refused <= MOST_REFUSED
    assert used >= USED


@pytest.mark.parametrize("way", ["bucket", "window"])
def test_without_redis_the_shares_of_all_workers_are_the_limit(way: str) -> None:
    world = World([Fleet(None, lambda: WORKERS) for _ in range(WORKERS)], way, 5)
    world.until(T0 + TEN_MINUTES)
    used, refused = world.between(T0, T0 + TEN_MINUTES)
    assert refused <= MOST_REFUSED
    assert used >= USED


def test_a_redis_that_goes_away_and_comes_back_brings_no_more_refusals(client: Any) -> None:
    world = World(shared(client), "window", 6)
    flush(client, world)
    world.until(T0 + 200)
    for fleet in world.fleets:
        fleet._away_until = float("inf")  # its own is five real seconds
    world.until(T0 + 400)
    for fleet in world.fleets:
        fleet._away_until = 0.0
    world.until(T0 + TEN_MINUTES)
    used, refused = world.between(T0, T0 + TEN_MINUTES)
    assert refused <= MOST_REFUSED
    assert used >= USED


def test_in_an_outage_one_call_at_a_time_asks_whether_it_is_over_and_a_flush_lets_no_others_through(
    client: Any,
) -> None:
    world = World(shared(client), "bucket", 7)
    flush(client, world)
    world.until(T0 + 100)
    world.out = True
    world.until(T0 + 110)
    before = len(world.down)
    for at in (130, 150, 170, 200):
        world.until(T0 + at)
        flush(client, world)
    world.until(T0 + 290)
    probes = len(world.down) - before
    assert 1 <= probes <= 8  # rests of four seconds to a minute
    assert world.most_probes == 1
    world.out = False
    world.until(T0 + 500)
    used, refused = world.between(T0 + 360, T0 + 500)  # the last rest is a minute at most
    assert refused == 0
    assert used >= USED


def test_a_probe_that_is_lost_with_its_worker_is_followed_by_another(client: Any) -> None:
    world = World(shared(client), "bucket", 8)
    flush(client, world)
    world.until(T0 + 100)
    world.fleets[0].cool(world.names[0], (T0 + 100) * 1_000, 5.0, 0.25, 60.0)
    world.dies_with_probe = True
    world.until(T0 + 200)
    assert len(world.dead) == 1
    first = min(one for one in world.through if one > T0 + 108)
    assert first <= T0 + 105 + PROVIDER_PROBE_MS / 1_000 + 8
    used, _ = world.between(T0 + 175, T0 + 200)
    assert used >= USED

"""From a client's POST to the provider's first byte, by the provider's own clock: a machine has one monotonic clock."""

from __future__ import annotations

import time
from pathlib import Path
from uuid import uuid4

from tests.bench import bare
from tests.bench.figures import Figure, middle, quantile
from tests.bench.house import SMALL_MODEL, House
from tests.bench.steps import prefix_of

TRIES = 40


def measure(house: House) -> list[Figure]:
    with house.workers(1, 8):
        (warm,) = house.sessions(1)
        prefix = prefix_of(house, warm)
        house.script(steps=0)
        plain = bare.open_bare(house.rig.provider.url, SMALL_MODEL, prefix, Path())
        known = [_one(house, warm) for _ in range(TRIES)]
        fresh = [_one(house, session) for session in house.sessions(TRIES)]
        direct: list[float] = []
        for _ in range(TRIES):
            session = str(uuid4())
            sent = time.monotonic()
            plain.turn([], "hello", session)
            direct.append((house.rig.provider.ledger(session)[-1]["first_byte"] - sent) * 1_000)
    return [
        _figure("POST to the provider's first byte, a session that has spoken", known, direct),
        _figure("POST to the provider's first byte, a new session", fresh, direct),
    ]


def _one(house: House, session: str) -> float:
    sent = time.monotonic()
    turn = house.rig.send(session, "hello")
    house.wait([turn], 30, 0.01)
    return (house.rig.provider.ledger(session)[-1]["first_byte"] - sent) * 1_000


def _figure(name: str, values: list[float], direct: list[float]) -> Figure:
    note = f"p95 {quantile(values, 0.95):.1f}, least {min(values):.1f}"
    return Figure(
        name, middle(values), "ms", middle(direct), "bare SDK call", mark=15, note=note, detail={"each_ms": values}
    )

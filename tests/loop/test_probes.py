"""A key that was left alone is asked by one call: what the loop does with that call, over real servers."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import orjson
import pytest

from tests.ground import Ground, Rehearsal
from workers.manners.terms import Asked, Limit, Told, Took, Wait
from workers.providers import wire
from workers.providers.replies import TextDelta

PER_MINUTE = 120


@pytest.fixture(autouse=True)
def limited(worker: Ground, provider: Rehearsal) -> None:
    """The key's limit is told by its first answer."""
    provider.post("limit", {"per_minute": PER_MINUTE, "way": "bucket"})
    assert answered(worker) == "done"


def answered(worker: Ground, **more: Any) -> str:
    turn = worker.turn(worker.session(), "go", **more)
    worker.look()
    return worker.view(turn)["status"]


def key(worker: Ground) -> str:
    (one,) = worker.ports.routes.pool("anthropic")
    return one.id


def now_ms() -> float:
    return datetime.now(UTC).timestamp() * 1_000


def take(worker: Ground, at_ms: float) -> Took | Wait:
    return worker.ports.routes.fleet.take(Asked("anthropic", (key(worker),), (Limit(),), 0.0, at_ms))


def rest(worker: Ground, name: str) -> None:
    """It was left alone, and is not any more."""
    worker.ports.routes.fleet.cool(name, now_ms() - 1_000, 0.5, 0.25, 60.0)


def test_a_probe_that_waits_for_its_turn_goes_out_after_it(worker: Ground) -> None:
    at_ms = now_ms()
    booked = [take(worker, at_ms) for _ in range(8)]
    assert isinstance(booked[-1], Took)
    assert booked[-1].wait_ms > 1_000
    rest(worker, "anthropic")
    assert answered(worker) == "done"


def test_a_turn_that_is_short_of_money_gives_its_probe_back(worker: Ground) -> None:
    rest(worker, key(worker))
    assert answered(worker, cap_usd=Decimal("0.000001")) == "parked"
    probe = take(worker, now_ms())
    assert isinstance(probe, Took)
    assert probe.strikes == 1


def test_what_an_answer_tells_of_its_key_is_heard_before_its_first_word(worker: Ground) -> None:
    (credential,) = worker.ports.routes.pool("anthropic")
    asked = {"role": "user", "content": [{"type": "text", "text": "hello"}]}
    body = {"model": worker.settings.model, "max_tokens": 4_096, "stream": True, "messages": [asked]}
    seen: list[object] = []
    wire.stream(
        worker.ports.routes.client(credential), orjson.dumps(body), sink=seen.append, cancel=wire.Cancel(),
        heard=lambda limits: seen.append(dict(limits)["anthropic-ratelimit-requests-limit"]),
    )  # fmt: skip
    assert seen[0] == str(PER_MINUTE)
    assert any(isinstance(one, TextDelta) for one in seen[1:])


def test_a_turns_answer_tells_its_keys_limit_once_and_its_end_that_it_went_well(
    worker: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = worker.ports.routes.fleet
    tell, told = fleet.tell, list[tuple[bool, bool]]()

    def listening(provider: str, name: str, what: Told, now_ms: float, *, ok: bool, **more: Any) -> None:
        told.append((what.requests is not None, ok))
        tell(provider, name, what, now_ms, ok=ok, **more)

    monkeypatch.setattr(fleet, "tell", listening)
    assert answered(worker) == "done"
    assert told == [(True, False), (False, True)]


@pytest.mark.parametrize(
    ("model", "cap", "told"),
    [
        ("claude-opus-5", "0.000001", ("parked", "money", None)),
        ("claude-of-no-list", "1", ("failed", None, "price_unknown")),
    ],
)
def test_a_probe_that_may_not_be_paid_does_not_hide_why_its_turn_may_not(
    worker: Ground, model: str, cap: str, told: tuple[str, str | None, str | None]
) -> None:
    """There is no other model, and this one is not out: it was not asked."""
    session = worker.session()
    worker.turn(session, "go")
    worker.look()
    worker.execute("update sessions set model = %s where id = %s", model, session)
    rest(worker, "anthropic")
    turn = worker.turn(session, "and?", cap_usd=Decimal(cap))
    worker.look()
    row = worker.view(turn)
    assert (row["status"], row["parked_on"], row["error_code"]) == told

"""A prompt that does not fit: made shorter and sent again; and what a person is told where that cannot help."""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import Any
from uuid import UUID

import pytest

from deploy.local.servers import Servers
from tests.ground import Ground, Rehearsal, ground
from tests.shrink.conftest import Bodies, assert_replayed

MODEL = "claude-sonnet-5-5"


@pytest.fixture(scope="module")
def small(
    servers: Servers, module_database_url: str, provider: Rehearsal, tmp_path_factory: pytest.TempPathFactory
) -> Generator[Ground]:
    provider.reset()
    home = tmp_path_factory.mktemp("small")
    with ground(module_database_url, servers.valkey.url, provider.url, home, tail_messages=4, prune_warm=False) as made:
        yield made


def _todo(step: int) -> dict[str, Any]:
    items = [{"text": f"item {step} {n} " + "word " * 30} for n in range(40)]
    return {"text": f"step {step}", "tools": [{"name": "todo", "input": {"items": items}}]}


def _session(worker: Ground, provider: Rehearsal, steps: int, **more: Any) -> tuple[UUID, UUID]:
    session = worker.session(**more)
    provider.script(
        [*[_todo(n) for n in range(steps)], {"text": "the work is done"}], session=str(session)
    )  # fmt: skip
    turn = worker.turn(session, "do the work", max_steps=90)
    return session, turn


def test_a_prompt_that_the_provider_finds_too_long_is_made_shorter_and_sent_again(
    small: Ground, provider: Rehearsal, bodies: Bodies
) -> None:
    """The projection knew nothing of that window. The step that the refused call had cost is given back."""
    session, turn = _session(small, provider, 8)
    provider.post("window", {"model": MODEL, "context": 14_000})
    try:
        small.look()
    finally:
        provider.post("window", {"model": MODEL, "context": None})

    row = small.view(turn)
    assert (row["status"], row["answer"]) == ("done", "the work is done"), row["error_text"]
    refused = small.rows("select refund, purpose from calls where turn = %s and status = 'failed'", turn)
    assert refused
    assert {call["refund"] for call in refused if call["purpose"] == "main"} == {"reduction"}
    assert row["steps"] - row["refunds"] == 9
    causes = small.rows("select decision, cause from reductions where session = %s", session)
    assert "overflow" in {told["cause"] for told in causes}
    assert_replayed(small, session, bodies(session))


def test_where_nothing_can_be_left_out_the_turn_ends_and_says_how_large_it_is(
    small: Ground, provider: Rehearsal, bodies: Bodies
) -> None:
    session, turn = _session(small, provider, 0)
    provider.post("window", {"model": MODEL, "context": 2_000})
    try:
        small.look()
    finally:
        provider.post("window", {"model": MODEL, "context": None})
    row = small.view(turn)
    assert (row["status"], row["error_code"]) == ("failed", "context_overflow")
    assert "go on in a new session" in row["error_text"]
    assert_replayed(small, session, bodies(session))


def test_a_floor_above_the_threshold_is_named_once_a_turn_and_no_compaction_is_tried(
    servers: Servers, module_database_url: str, provider: Rehearsal, tmp_path_factory: pytest.TempPathFactory
) -> None:
    home = tmp_path_factory.mktemp("floor")
    with ground(
        module_database_url, servers.valkey.url, provider.url, home, tail_messages=4, context_threshold=0.001
    ) as tight:
        _, turn = _session(tight, provider, 3)
        tight.look()
        assert tight.view(turn)["status"] == "done"
        told = tight.rows("select decision, cause, arithmetic from reductions where turn = %s", turn)
        blocked = [row for row in told if row["decision"] == "blocked"]
        assert [row["cause"] for row in blocked] == ["floor"]
        message = json.loads(blocked[0]["arithmetic"])["message"]
        assert message.startswith("tools and system prompt alone take ")
        assert "model with a larger window" in message
        assert tight.rows("select 1 from calls where turn = %s and purpose = 'summary'", turn) == []
        (event,) = [e for e in tight.events(turn) if e.kind == "context.reduced" and e.data["decision"] == "blocked"]
        assert event.data["arithmetic"]["message"] == message

"""A summary that another model writes than the conversation's: the chain of auxiliary work, on real servers."""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from shared.store import transcript
from tests.ground import Ground, Rehearsal, ground
from tests.shrink.compacting import GOOD, claim, compact, go_on, long_session
from workers import booking, gathering
from workers.compaction import run

OTHER = "gpt-6.1-sol"


@pytest.fixture
def worker(
    database_url: str, redis_url: str, provider: Rehearsal, other: Rehearsal, tmp_path: Path
) -> Generator[Ground]:
    provider.reset()
    other.reset()
    chain: dict[str, Any] = {"auxiliary": f"openai:{OTHER} > session", "providers": {"openai": {"base_url": other.url}}}
    for one, name in ((provider, "own"), (other, "other")):
        one.post("capture", {"directory": str(tmp_path / name)})
    with ground(database_url, redis_url, provider.url, tmp_path, {"OPENAI_API_KEY": "sk-proj-other"}, **chain) as made:
        yield made
    provider.post("capture", {"directory": None})


def sent(home: Path, name: str) -> list[bytes]:
    return [path.read_bytes() for path in sorted((home / name).glob("*.json"))]


def summaries(worker: Ground, session: UUID) -> list[dict[str, Any]]:
    return worker.rows("select * from calls where session = %s and purpose = 'summary' order by seq", session)


def test_another_model_writes_the_summary_and_the_conversation_stays_where_it_is(
    worker: Ground, provider: Rehearsal, other: Rehearsal
) -> None:
    other.script([{"text": GOOD}], summaries=True)
    session = long_session(worker, provider, (), [{"text": "went on"}], steps=4)
    turn = worker.turn(session, "And now?")
    held = claim(worker)
    came = compact(worker, held)
    assert isinstance(came, run.Compacted)
    assert came.fallback is None
    go_on(worker, held)
    row = worker.view(turn)
    assert (row["status"], row["answer"], row["steps"], row["model"]) == ("done", "went on", 1, None)
    (call,) = summaries(worker, session)
    assert (call["provider"], call["model"], call["status"], call["bare"]) == ("openai", OTHER, "settled", True)
    (billed,) = other.ledger()
    assert float(call["cost_usd"]) == pytest.approx(billed["usd"])
    assert row["spent_usd"] == sum(
        one["cost_usd"] for one in worker.rows("select cost_usd from calls where turn = %s", turn)
    )
    state = worker.one("select spoke from sessions where id = %s", session)
    assert state["spoke"] == f"anthropic:{worker.settings.model}"
    assert [event for event in worker.events(turn) if event.kind == "model.switched"] == []
    # To another provider goes what was said, without the tools and without what the own model signed.
    (asked,) = sent(worker.home, "other")
    body = json.loads(asked)
    assert "tools" not in body
    assert "Do the long work. It must not touch the ledger." in asked.decode()
    own = sent(worker.home, "own")
    signed = [block for one in json.loads(own[-2])["messages"] for block in one["content"] if block.get("signature")]
    assert signed
    assert not any(block["signature"] in asked.decode() for block in signed)
    calls = worker.rows("select id, provider from calls where session = %s order by seq", session)
    for provider_name, bodies in (("anthropic", own), ("openai", [asked])):
        again = [
            worker.database.read(lambda c, one=one["id"]: transcript.replay(c, one))
            for one in calls
            if one["provider"] == provider_name
        ]
        assert all(one.agrees for one in again)
        assert [one.body for one in again] == bodies


def test_where_the_first_of_the_chain_is_out_the_next_one_writes_the_summary(
    worker: Ground, provider: Rehearsal, other: Rehearsal
) -> None:
    other.post("down", {"status": 503})
    session = long_session(worker, provider, [{"text": GOOD}], [{"text": "went on"}], steps=4)
    turn = worker.turn(session, "And now?")
    held = claim(worker)
    came = compact(worker, held)
    assert isinstance(came, run.Compacted)
    assert came.fallback is None
    go_on(worker, held)
    assert worker.view(turn)["answer"] == "went on"
    assert [(one["provider"], one["status"], one["bare"]) for one in summaries(worker, session)] == [
        ("openai", "failed", True), ("anthropic", "settled", False),
    ]  # fmt: skip


@pytest.mark.parametrize("auxiliary", ["session", "anthropic:claude-haiku-5-5"])
def test_a_turn_that_has_the_probe_of_its_provider_has_its_summary_made_with_it(
    database_url: str, redis_url: str, provider: Rehearsal, tmp_path: Path, auxiliary: str
) -> None:
    """After an outage: shut out by its own probe, the turn lost its past to what stands in for a summary."""
    provider.reset()
    with ground(database_url, redis_url, provider.url, tmp_path, auxiliary=auxiliary) as worker:
        session = long_session(worker, provider, [{"text": GOOD}], [{"text": "went on"}], steps=4)
        turn = worker.turn(session, "And now?")
        fleet = worker.ports.routes.fleet
        at = worker.one("select extract(epoch from clock_now())::float8 * 1000 as at")["at"]
        fleet.cool("anthropic", at - 1_000, 0.5, 0.25, 60.0)
        held = claim(worker)
        assert booking.book(worker.ports, held, gathering.NOTHING) is None
        assert held.ticket.strikes == 1
        came = compact(worker, held)
        assert isinstance(came, run.Compacted)
        assert came.fallback is None
        go_on(worker, held)
        assert worker.view(turn)["answer"] == "went on"
        assert [row["status"] for row in summaries(worker, session)] == ["settled"]

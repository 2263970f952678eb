"""The prompt cache, by the provider's own bill: nothing that was written is written again, nothing moves."""

from __future__ import annotations

import itertools
from typing import Any

from tests.ground import Ground, Rehearsal


def test_a_step_of_many_blocks_still_reads_what_the_step_before_wrote(worker: Ground, provider: Rehearsal) -> None:
    """A marker looks back 20 positions; a step of a dozen parallel calls is 25 blocks: the pinned mark finds it."""
    session = worker.session()
    many: list[dict[str, Any]] = [{"name": "todo", "input": {"items": [{"text": f"{n}" * 40}]}} for n in range(12)]
    provider.script([{"text": "a", "tools": many}, {"text": "b", "tools": many}, {"text": "c"}], session=str(session))
    worker.turn(session, "a long question. " * 400)
    worker.look()
    calls = provider.ledger(session)
    assert [c["extended"] for c in calls] == [None, True, True]
    for before, after in itertools.pairwise(calls):
        assert after["cache_read"] == before["cache_read"] + before["cache_write_5m"] + before["cache_write_1h"]


def test_sessions_of_one_profile_share_the_front_of_the_prompt(worker: Ground, provider: Rehearsal) -> None:
    first, second = worker.session(), worker.session()
    for session in (first, second):
        provider.script([{"text": "hello"}], session=str(session))
        worker.turn(session, "hi")
        worker.look()
    (cold,), (warm,) = provider.ledger(first), provider.ledger(second)
    assert cold["cache_read"] == 0
    assert warm["cache_read"] > 500, "tools and the stable tier are read by the second session"


def test_the_prefix_is_the_stored_one_though_the_builder_has_changed(
    worker: Ground, provider: Rehearsal, monkeypatch: Any
) -> None:
    session = worker.session()
    provider.script([{"text": "one"}, {"text": "two"}], session=str(session))
    worker.turn(session, "first")
    worker.look()
    monkeypatch.setattr("workers.prompt.stable.text", _another_identity)
    monkeypatch.setattr("workers.tools.registry.schema_text", _no_tools)
    worker.turn(session, "second")
    worker.look()
    assert [c["extended"] for c in provider.ledger(session)] == [None, True]


def _another_identity(identity: str, tools: tuple[str, ...]) -> str:
    return f"another identity altogether {identity} {len(tools)}"


def _no_tools(names: object) -> str:
    return "[]" if names else ""

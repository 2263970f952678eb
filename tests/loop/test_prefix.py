"""The prompt cache, by the provider's own bill: nothing that was written is written again, nothing moves."""

from __future__ import annotations

import itertools
from typing import Any

from shared.store import transcript
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


def test_a_session_whose_signed_reasoning_is_refused_goes_on_without_it(
    worker: Ground, provider: Rehearsal, tmp_path: Any
) -> None:
    """The key or the model behind the address is another now: without the reasoning the same request is accepted."""
    refused = "messages.1.content.0: Invalid `signature` in `thinking` block."
    session = worker.session()
    provider.script(
        [
            {"thinking": "hm", "tools": [{"name": "list_files", "input": {}}]},
            {"fault": {"kind": "status", "status": 400, "error_type": "invalid_request_error", "message": refused}},
            {"text": "went on"},
            {"text": "and on"},
        ],
        session=str(session),
    )
    captured = tmp_path / "captured"
    captured.mkdir()
    provider.post("capture", {"directory": str(captured)})
    turn = worker.turn(session, "go")
    worker.look()
    following = worker.turn(session, "more")
    worker.look()
    provider.post("capture", {"directory": None})
    assert [worker.view(t)["answer"] for t in (turn, following)] == ["went on", "and on"]
    bodies = [path.read_bytes() for path in sorted(captured.glob(f"*{session}*.json"))]
    assert [b'"type":"thinking"' in body for body in bodies] == [False, True, False, False]
    for call, body in zip(
        worker.rows("select id from calls where session = %s order by seq", session), bodies, strict=True
    ):
        assert worker.database.read(lambda c, call=call: transcript.replay(c, call["id"])).body == body

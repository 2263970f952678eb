"""A turn over the other wires: the same loop, the provider's own rules, and a replay that is what went out."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from shared.store import transcript
from tests.ground import Rehearsal, ground


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("openai", "gpt-6.1-sol"),
        ("azure", "gpt-5.5"),
        ("openrouter", "claude-sonnet-5-5"),
        ("custom", "smollm2"),
        ("bedrock", "global.anthropic.claude-sonnet-5-5"),
    ],
)
def test_a_turn_with_tools_is_done_and_each_call_is_replayed_byte_for_byte(
    database_url: str, redis_url: str, provider: Rehearsal, tmp_path: Path, name: str, model: str
) -> None:
    provider.reset()
    captured = tmp_path / "captured"
    provider.post("capture", {"directory": str(captured)})
    wide: dict[str, Any] = {"context_window": 100_000} if name == "custom" else {}
    if wide:
        provider.post("window", {"model": model, "context": 100_000})
    with ground(database_url, redis_url, provider.url, tmp_path, provider=name, model=model, **wide) as worker:
        session = worker.session()
        provider.script(
            [
                {
                    "text": "let me look", "thinking": "where?",
                    "tools": [{"name": "write_file", "input": {"path": "a.txt", "content": "ü\n"}}],
                },
                {"tools": [{"name": "read_file", "input": {"path": "a.txt"}}]},
                {"text": "it says ü"},
            ]
        )  # fmt: skip
        turn = worker.turn(session, "write and read")
        worker.look()
        row = worker.view(turn)
        assert (row["status"], row["answer"], row["error_code"]) == ("done", "it says ü", None)
        calls = worker.rows("select * from calls where turn = %s order by step", turn)
        replayed = [worker.database.read(lambda c, one=call["id"]: transcript.replay(c, one)) for call in calls]
    provider.post("capture", {"directory": None})
    sent = [path.read_bytes() for path in sorted(captured.glob("*.json"))]
    assert [one.body for one in replayed] == sent
    assert all(one.agrees for one in replayed)
    billed = [call["usd"] for call in provider.ledger(session)] if name != "custom" else [None] * 3
    told = [None if usd is None else pytest.approx(Decimal(str(usd))) for usd in billed]
    if name != "openrouter":  # whose prices are its own, and not those of the stand-in
        assert [call["cost_usd"] for call in calls] == told
    assert [call["provider"] for call in calls] == [name] * 3


def test_on_bedrock_a_last_word_without_tools_and_whole_answers_go_well_and_are_replayed(
    database_url: str, redis_url: str, provider: Rehearsal, tmp_path: Path
) -> None:
    """Its past has calls, and a request without tools is refused there; a throttled call is made again."""
    provider.reset()
    captured = tmp_path / "captured"
    provider.post("capture", {"directory": str(captured)})
    settings: dict[str, Any] = {"provider": "bedrock", "model": "eu.anthropic.claude-sonnet-4-5-20250929-v1:0"}
    with ground(database_url, redis_url, provider.url, tmp_path, provider_streams=False, **settings) as worker:
        session = worker.session()
        look: dict[str, Any] = {"tools": [{"name": "list_files", "input": {}}]}
        slow = {"fault": {"kind": "status", "status": 429, "error_type": "rate_limit_error", "retry_after": 0}}
        provider.script([look, slow, look, {"text": "what I found"}])
        turn = worker.turn(session, "never stop", max_steps=2)
        worker.look()
        row = worker.view(turn)
        assert (row["status"], row["answer"], row["error_code"]) == ("done", "what I found", None)
        calls = worker.rows("select * from calls where turn = %s order by id", turn)
        replayed = [worker.database.read(lambda c, one=call["id"]: transcript.replay(c, one)).body for call in calls]
    provider.post("capture", {"directory": None})
    assert sorted(replayed) == sorted(path.read_bytes() for path in captured.glob("*.json"))
    assert [call["purpose"] for call in calls][-1] == "final"
    assert b'"no_tool"' in replayed[-1]
    assert [call["status"] for call in calls] == ["settled", "failed", "settled", "settled"]
    assert sum(call["cost_usd"] or 0 for call in calls) == pytest.approx(
        Decimal(str(sum(call["usd"] for call in provider.ledger(session) if call["status"] == 200)))
    )

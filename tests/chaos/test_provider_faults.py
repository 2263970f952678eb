"""A provider that stalls, cuts off, floods, redirects or says nothing: the turn goes on or ends with a code."""

from __future__ import annotations

from typing import Any

from tests.chaos.figures import TABLE, Figures
from tests.chaos.rig import Rig

MENDED = "another try was answered"
# Fault → how the turn ends whose first call meets it.
FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "stall": ({"fault": {"kind": "stall", "after_chunks": 1, "seconds": 60}}, "done"),
    "slow first byte": ({"delay_s": 60}, "done"),
    "cut": ({"fault": {"kind": "cut", "after_chunks": 2}}, "done"),
    "clean end too early": ({"fault": {"kind": "clean_eof", "after_chunks": 2}}, "done"),
    "error event": ({"fault": {"kind": "error_event", "after_chunks": 1, "error_type": "overloaded_error"}}, "done"),
    "garbage": ({"fault": {"kind": "garbage", "after_chunks": 1}}, "done"),
    "nothing": ({"fault": {"kind": "nothing"}}, "done"),
    "429": ({"fault": {"kind": "status", "status": 429, "retry_after": 1}}, "done"),
    "500": ({"fault": {"kind": "status", "status": 500}}, "done"),
    "529": ({"fault": {"kind": "status", "status": 529}}, "done"),
    "no usage": ({"fault": {"kind": "no_usage"}, "text": MENDED}, "done"),
    "html, 502": ({"fault": {"kind": "html", "status": 502}}, "done"),
    "html, 200": ({"fault": {"kind": "html", "status": 200}}, "failed"),
    "redirect": ({"fault": {"kind": "redirect", "location": "http://127.0.0.1:1/elsewhere"}}, "failed"),
    "flood": ({"fault": {"kind": "flood", "after_chunks": 1, "bytes": 80_000_000}}, "failed"),
    "wrong key": ({"fault": {"kind": "status", "status": 401}}, "failed"),
    "overflow": ({"fault": {"kind": "overflow"}}, "failed"),
}


def test_no_fault_of_the_provider_hangs_a_turn_or_ends_a_worker(alone: Rig) -> None:
    (before,) = alone.workers_ready(1)
    turns: dict[str, str] = {}
    for name, (reply, _) in FAULTS.items():
        session = alone.session()
        alone.script(session, [{"text": "this is only the beginning of it", "chunks": 4, **reply}, {"text": MENDED}])
        turns[name] = alone.send(session, name)

    rows = alone.all_ended(list(turns.values()), 60)

    ended = dict(zip(turns, rows, strict=True))
    assert {name: row["status"] for name, row in ended.items()} == {name: ends for name, (_, ends) in FAULTS.items()}
    failed = {name: (row["error_code"], row["error_text"]) for name, row in ended.items() if row["error_code"]}
    codes = sorted({code for code, _ in failed.values()})
    assert "internal_error" not in codes, failed
    assert all(len(text) > 20 for _, text in failed.values()), failed
    assert {row["answer"] for row in rows if row["status"] == "done"} == {MENDED}
    assert {row["takeovers"] for row in rows} == {0}
    assert [row["reserved_usd"] for row in rows] == [0] * len(rows)
    (after,) = alone.workers_ready(1)
    assert after["boot_id"] == before["boot_id"]
    TABLE.append(Figures(f"{len(FAULTS)} faults of the provider", turns=len(rows), note=", ".join(codes)))

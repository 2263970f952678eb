"""Ten children that share a prefix of 9,000 tokens: what the provider bills for it when one goes first, against ten
that start together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg

from tests.bench.figures import Figure
from tests.bench.house import House
from tests.ground import until

CHILDREN = 10
SLOTS = 12
DELAY_S = 0.5
CONTEXT = "\n".join(f"- rule {n:03}: {n * 7919:x} {n * 104729:x} {n * 1299709:x} {n * 15485863:x}" for n in range(330))
DELEGATE = {"name": "delegate_task", "input": {"tasks": [{"goal": f"part {n}"} for n in range(CHILDREN)]}}
Call = dict[str, Any]


def measure(house: House) -> list[Figure]:
    ours, ungated = _run(house, gate=True), _run(house, gate=False)
    mine, theirs = _usd(ours), _usd(ungated)
    shared = max(call["cache_read"] for call in ours)
    return [
        Figure(
            f"{CHILDREN} children that share {shared:,} tokens, their first calls", mine * 1_000, "thousandths of a $",
            theirs * 1_000, "started together", mark=0.5, judged=mine / theirs,
            note=f"writes of what is shared: {_writes(ours)} against {_writes(ungated)}; last one at the provider "
            f"{_spread(ours):.1f} s after the first, against {_spread(ungated):.1f} s",
            detail={"ours": ours, "ungated": ungated},
        )
    ]  # fmt: skip


def _run(house: House, *, gate: bool) -> list[Call]:
    """The children's calls, in a worker of their own, so that nothing is warm."""
    house.reset()
    house.rig.provider.script(
        [{"text": "I hand it on", "tools": [DELEGATE]}, {"text": "all in"}], match={"contains": "delegate now"}
    )
    house.rig.provider.post("script", {"match": {"contains": "part"}, "repeat": True, "replies": [_answer()]})
    (session,) = house.sessions(1)
    folder = Path(house.rig.one("select workspace from sessions where id = %s", session)["workspace"])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "AGENTS.md").write_text(f"{CONTEXT}\n- gate: {gate}", "utf-8")
    with psycopg.connect(house.rig.facts["database_url"], autocommit=True) as connection:
        connection.execute("delete from shared_prefixes")
        if not gate:  # the same code without what leads: no row ever says that somebody goes ahead
            connection.execute(
                "create or replace function no_leader() returns trigger language plpgsql as "
                "$$ begin return null; end $$"
            )
            connection.execute(
                "create trigger no_leader before insert on shared_prefixes for each row execute function no_leader()"
            )
        try:
            with house.workers(1, SLOTS):
                turn = house.rig.send(session, "delegate now")
                until(lambda: house.rig.turn(turn)["status"] == "done", 60, "the parent's end")
        finally:
            connection.execute("drop trigger if exists no_leader on shared_prefixes")
            connection.execute("drop function if exists no_leader")
    own = {str(row["session"]) for row in house.rig.rows("select session from turns where parent = %s", turn)}
    calls = [call for call in house.rig.provider.ledger() if call["session"] in own]
    assert len(calls) == CHILDREN, f"{len(calls)} calls of {CHILDREN} children"
    return calls


def _answer() -> Call:
    return {"text": "found", "delay_s": DELAY_S}


def _usd(calls: list[Call]) -> float:
    return sum(float(call["usd"]) for call in calls)


def _writes(calls: list[Call]) -> int:
    return sum(call["cache_read"] < 9_000 for call in calls)


def _spread(calls: list[Call]) -> float:
    started = [call["started"] for call in calls]
    return max(started) - min(started)

"""The runaway: a conversation that no compaction can make small enough is not compacted before every call.

Three workers take turns at it, a new claim each time, by the test clock; the numbers are those of the rows.
"""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from deploy.local.servers import Servers
from tests.ground import Ground, Rehearsal, ground
from tests.shrink.compacting import GOOD, todo
from tests.shrink.conftest import advance

MODEL = "claude-haiku-4-5"
RESTARTS, PAUSE_S = 13, 50.0
"""Ten minutes and more; each claim is another worker's, and what it had in memory is gone with it."""


@contextlib.contextmanager
def workers(url: str, servers: Servers, provider: Rehearsal, home: Path, **more: Any) -> Generator[list[Ground]]:
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(ground(url, servers.valkey.url, provider.url, home / str(n), model=MODEL, **more))
            for n in range(3)
        ]


def played(fleet: list[Ground], provider: Rehearsal, summaries: list[dict[str, Any]], items: int, opening: str) -> UUID:
    """Thirteen turns of two calls and a long result each."""
    session = fleet[0].session()
    provider.script(summaries, session=str(session), summaries=True, repeat=True)
    for at in range(RESTARTS):
        worker = fleet[at % len(fleet)]
        provider.script([{"text": "on", "tools": [todo(at, items)]}, {"text": f"done {at}"}], session=str(session))
        turn = worker.turn(session, f"Go on, part {at}. {'' if at else opening}")
        assert worker.look() == 1
        assert worker.view(turn)["answer"] == f"done {at}", worker.view(turn)["error_text"]
        advance(worker, PAUSE_S)
    return session


def attempts(worker: Ground, session: UUID) -> list[float]:
    """When each was made, in seconds from the first; each leaves one row, and a summary call if it made one."""
    rows = worker.rows(
        "select extract(epoch from created_at)::float as at, decision from reductions where session = %s"
        " and decision in ('compact', 'skipped') order by id",
        session,
    )
    calls = worker.one("select count(*) as n from calls where session = %s and purpose = 'summary'", session)["n"]
    assert calls <= len(rows)
    return [row["at"] - rows[0]["at"] for row in rows]


def prunes(worker: Ground, session: UUID) -> int:
    query = "select count(*) as n from reductions where session = %s and decision = 'prune'"
    return worker.one(query, session)["n"]


def reasons(worker: Ground, session: UUID) -> list[str]:
    rows = worker.rows("select arithmetic from reductions where session = %s and decision = 'blocked'", session)
    told = [json.loads(row["arithmetic"]) for row in rows]
    return [one.get("why") or one["message"] for one in told]


@dataclass(frozen=True)
class Case:
    """`share` is the threshold of the window, `items` the length of a result, `told` what a person reads of it."""

    name: str
    share: float
    items: int
    told: str
    summary: dict[str, Any]
    opening: str = ""
    tail_tokens: int = 20_000
    tail_messages: int = 20


WELL: dict[str, Any] = {"text": GOOD}
CASES = [
    Case("floor-above-the-threshold", 0.01, 2, "tools and system prompt alone take", WELL),
    Case("irreducible-middle", 0.1, 60, "nothing could be left out", WELL, "", 1_000_000, 1_000),
    Case("dead-summariser", 0.13, 90, "the last summary failed", {"fault": {"kind": "status", "status": 503}}),
    Case("never-small-enough", 0.2, 90, "has not been seen to help", WELL, opening="a long task " * 9_000),
]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_at_most_one_attempt_in_five_minutes_whatever_is_wrong(
    module_database_url: str, servers: Servers, provider: Rehearsal, tmp_path: Path, case: Case
) -> None:
    more: dict[str, Any] = {
        "context_threshold": case.share, "prune_warm": False, "prune_cold": False, "stub_at_birth": False,
        "compact_by_meter": False, "tail_tokens": case.tail_tokens, "tail_messages": case.tail_messages,
    }  # fmt: skip
    with workers(module_database_url, servers, provider, tmp_path, **more) as fleet:
        session = played(fleet, provider, [case.summary], case.items, case.opening)
        made = attempts(fleet[0], session)
        told, pruned = reasons(fleet[0], session), prunes(fleet[0], session)
    apart = [b - a for a, b in itertools.pairwise(made)]
    assert all(gap >= 300 for gap in apart), made
    assert (len(made) == 0) if case.name.startswith("floor") else (2 <= len(made) <= 3), made
    assert any(case.told in why for why in told), told
    assert pruned <= 3, "nor is the cache lost every turn for want of a summary"

"""Taking back and bringing back: what the model sees, what the provider still reads, and what is kept as it was."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

from shared.store import transcript
from shared.values import EventKind
from tests.ground import Ground, Rehearsal
from tests.shrink.conftest import Bodies, assert_replayed
from tests.shrink.travel import rewound, said

CANARY = "the heron stands at 4711"


def broken(worker: Ground, session: UUID) -> list[str]:
    turns = worker.rows("select id from turns where session = %s", session)
    return [
        event.kind for turn in turns for event in worker.events(turn["id"]) if event.kind == EventKind.PREFIX_BROKEN
    ]


def row(worker: Ground, session: UUID) -> dict[str, Any]:
    return worker.one("select * from sessions where id = %s", session)


def shown(worker: Ground, session: UUID) -> str:
    prefix = row(worker, session)["prefix"]
    request = worker.database.read(lambda c: transcript.project(c, session, prefix))
    return " | ".join(json.loads(block).get("text", "?") for piece in request.pieces for block in piece.blocks)


def test_what_was_taken_back_is_in_no_later_request_and_what_stays_is_read_from_the_cache(
    worker: Ground, provider: Rehearsal, bodies: Bodies
) -> None:
    session = worker.session()
    said(worker, provider, session, "first " + "long " * 2000, "one")
    second = said(worker, provider, session, f"second {CANARY}", f"I note: {CANARY}")
    said(worker, provider, session, "third", "three")
    before = len(bodies(session))
    assert CANARY.encode() in bodies(session)[-1]

    rewound(worker, session, second)

    assert "second" not in shown(worker, session)
    said(worker, provider, session, "fourth", "four")
    later = bodies(session)[before:]
    assert len(later) == 1
    assert CANARY.encode() not in later[0]
    assert b"third" not in later[0]
    assert b"first" in later[0]
    call = worker.one("select * from calls where session = %s order by seq desc limit 1", session)
    assert call["cache_read_tokens"] > 2000
    assert call["cache_write_5m_tokens"] < 500
    assert broken(worker, session) == []
    assert_replayed(worker, session, bodies(session))

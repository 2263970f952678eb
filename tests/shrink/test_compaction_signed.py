"""Signed reasoning and an edited past, on a model that binds each block to the exact prefix before it.

The provider checks every block that comes back. After a summary, stubs, a rewind or another system prompt what is sent
must be accepted; and that the check bites is shown by sending what the projection leaves out.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from shared.request import blocks, marked, projection
from shared.store import transcript
from tests.ground import Ground, Rehearsal
from tests.shrink.compacting import GOOD, claim, compact, go_on, long_session
from tests.shrink.conftest import Bodies, assert_replayed
from workers import prefixing
from workers.compaction import run
from workers.held import Held

BOUND = "claude-opus-5-5"
WENT_ON: dict[str, Any] = {"thinking": "hm", "text": "went on"}


def signed(body: bytes) -> int:
    parsed = json.loads(body)
    return sum(block["type"] == "thinking" for m in parsed["messages"] for block in m["content"])


def summary(shared: Ground, held: Held, _: pytest.MonkeyPatch) -> None:
    assert isinstance(compact(shared, held), run.Compacted)


def summary_and_another_prompt(shared: Ground, held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.prompt.stable.text", another_identity)
    assert isinstance(compact(shared, held), run.Compacted)
    assert shared.rows("select 1 from edits where session = %s and kind = 'prefix' offset 1", held.claim.session)


def another_identity(identity: str, tools: object) -> str:
    return f"Another identity altogether {identity}{bool(tools)}."


def stubs(shared: Ground, held: Held, _: pytest.MonkeyPatch) -> None:
    """One old result becomes a line, as a prune does it."""
    message = shared.rows(
        "select id from messages where session = %s and author = 'tool' order by id", held.claim.session
    )[1]["id"]
    row = shared.one(
        "insert into edits (session, kind, first, block, text, cause, fence) select id, 'stub', %s, 0, 'a line',"
        " 'test', fence from sessions where id = %s returning id",
        message, held.claim.session,
    )  # fmt: skip
    shared.execute("update sessions set last_edit = %s where id = %s", row["id"], held.claim.session)
    held.new_epoch(row["id"])


EDITS: list[Callable[[Ground, Held, pytest.MonkeyPatch], None]] = [summary, summary_and_another_prompt, stubs]


@pytest.mark.parametrize("edit", EDITS, ids=[edit.__name__ for edit in EDITS])
def test_the_model_accepts_the_epoch_that_an_edit_begins(
    shared: Ground,
    provider: Rehearsal,
    bodies: Bodies,
    monkeypatch: pytest.MonkeyPatch,
    edit: Callable[[Ground, Held, pytest.MonkeyPatch], None],
) -> None:
    session = long_session(shared, provider, [{"text": GOOD}], [WENT_ON, {**WENT_ON, "text": "and on"}], model=BOUND)
    before = bodies(session)[-1]
    turn = shared.turn(session, "And now?")
    held = claim(shared)
    edit(shared, held, monkeypatch)
    go_on(shared, held)
    assert shared.view(turn)["answer"] == "went on", shared.view(turn)["error_text"]
    assert signed(bodies(session)[-1]) < signed(before), "what stands behind the edit goes without its reasoning"
    following = shared.turn(session, "And then?")
    shared.look()
    assert shared.view(following)["answer"] == "and on"
    assert signed(bodies(session)[-1]) == signed(bodies(session)[-2]) + 1, "the new epoch has reasoning of its own"
    assert [call["status"] for call in provider.ledger(session)] == [200] * len(bodies(session))
    assert_replayed(shared, session, bodies(session))


def test_what_stands_before_a_rewind_keeps_its_reasoning_and_is_accepted(
    shared: Ground, provider: Rehearsal, bodies: Bodies
) -> None:
    session = long_session(shared, provider, [], [WENT_ON], model=BOUND)
    turn = shared.turn(session, "And now?")
    held = claim(shared)
    cut = shared.rows("select id from messages where session = %s and role = 'assistant' order by id", session)[4]["id"]
    row = shared.one(
        "insert into edits (session, kind, first, last, cause, fence) select s.id, 'rewind', %s, (select max(m.id) - 1"
        " from messages m where m.session = s.id), 'test', fence from sessions s where s.id = %s returning id",
        cut, session,
    )  # fmt: skip
    shared.execute("update sessions set last_edit = %s where id = %s", row["id"], session)
    held.new_epoch(row["id"])
    go_on(shared, held)
    assert shared.view(turn)["answer"] == "went on", shared.view(turn)["error_text"]
    assert signed(bodies(session)[-1]) == 4
    assert_replayed(shared, session, bodies(session))


def test_reasoning_kept_behind_an_edit_would_be_refused(shared: Ground, provider: Rehearsal, bodies: Bodies) -> None:
    """The same request with the blocks that the projection leaves out put back: the provider refuses it by their
    signature. Whoever keeps them, in `edits.keeps_reasoning` or elsewhere, turns the tests above red."""
    session = long_session(shared, provider, [{"text": GOOD}], [WENT_ON], model=BOUND)
    shared.turn(session, "And now?")
    held = claim(shared)
    assert isinstance(compact(shared, held), run.Compacted)
    request = prefixing.cold_request(shared.ports, held)
    rows = {row.id: row for row in shared.database.read(lambda c: transcript.load_messages(c, session))}
    kept: list[projection.Message] = []
    for piece in request.pieces:
        sealed = rows[piece.id].blocks if piece.id in rows and piece.blocks == stored(rows[piece.id]) else None
        content = blocks.splice(piece.blocks, blocks.split_reasoning(sealed)) if sealed else piece.blocks
        kept.append(projection.Message(piece.role, content, piece.id))
    assert answer(provider, request) == (200, "")
    code, why = answer(provider, projection.with_messages(request, kept))
    assert code == 400
    assert "Invalid `signature` in `thinking` block" in why


def stored(row: projection.MessageRow) -> tuple[str, ...]:
    return blocks.split(row.content)


def answer(provider: Rehearsal, request: projection.Request) -> tuple[int, str]:
    """The status, and the error's words."""
    body = marked.mark(request, (), None).body(f'"model":"{BOUND}","max_tokens":2000')
    headers = {"x-api-key": "test", "anthropic-version": "2023-06-01", "content-type": "application/json"}
    found = httpx.post(f"{provider.url}/v1/messages", content=body, headers=headers, timeout=20)
    return found.status_code, "" if found.status_code == 200 else found.json()["error"]["message"]

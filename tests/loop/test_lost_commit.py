"""A COMMIT whose reply is lost is never resent: it is read, under the session's lock, whether it landed."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from deploy.drill.swallow import Loss, Proxy
from tests.ground import Ground, Rehearsal, lossy_ground

TOOLS = [{"name": "write_file", "input": {"path": "a.txt", "content": "x"}}]


@pytest.fixture
def lossy(database_url: str, redis_url: str, provider: Rehearsal, tmp_path: Path) -> Generator[tuple[Ground, Proxy]]:
    provider.reset()
    with lossy_ground(database_url, redis_url, provider.url, tmp_path) as made:
        yield made


# The writes of a turn by what stands in their bytes, one after another: the claim, its COMMIT, the first prefix, a
# reservation, T1 and its COMMIT, a run's result, the last answer and the COMMIT that ends the turn with it.
WRITES = [
    (b"pg_advisory_xact_lock",),
    (b"COMMIT",),
    (b"a new session",),
    (b'"stream":true',),
    (b"alpha reply",),
    (b"alpha reply", b"COMMIT"),
    (b"written",),
    (b"the answer",),
    (b"the answer", b"COMMIT"),
]  # fmt: skip


@pytest.mark.parametrize("loss", list(Loss))
@pytest.mark.parametrize("write", WRITES)
def test_a_turn_ends_once_whichever_commit_loses_its_reply(
    lossy: tuple[Ground, Proxy], provider: Rehearsal, loss: Loss, write: tuple[bytes, ...]
) -> None:
    worker, proxy = lossy
    session = worker.session()
    replies = [{"text": "alpha reply", "tools": TOOLS}, {"text": "the answer"}]
    provider.script(replies, session=str(session))
    turn = worker.turn(session, "go")
    proxy.lose(write, loss)
    worker.look()
    if worker.view(turn)["status"] == "running":
        pytest.fail("the turn hangs in `running` under a live worker")
    worker.look()

    row = worker.view(turn)
    assert (row["status"], row["answer"], row["step"]) == ("done", "the answer", 2)
    assert row["reserved_usd"] == 0
    keys = [tuple(r.values()) for r in worker.rows(
        "select step, ordinal from messages where turn = %s order by id", turn)]  # fmt: skip
    assert keys == [(0, 0), (1, 0), (1, 1), (2, 0)]
    statuses = [r["status"] for r in worker.rows("select status from calls where turn = %s order by seq", turn)]
    assert statuses == ["settled", "settled"]
    assert worker.events(turn)[-1].kind.value == "turn.finished"
    assert proxy.lost == 1
    assert len(provider.ledger(session)) == 2

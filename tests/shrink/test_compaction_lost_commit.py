"""An edit of the past whose reply is lost is never written twice: whether it landed is read under the session lock."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from deploy.drill.swallow import Loss, Proxy
from deploy.local.servers import Servers
from tests.ground import Ground, Rehearsal, lossy_ground
from tests.shrink.compacting import GOOD, claim, compact, go_on, long_session
from tests.shrink.conftest import Bodies, advance, assert_replayed
from workers.compaction import run


@pytest.fixture(scope="module")
def lossy(
    module_database_url: str, servers: Servers, provider: Rehearsal, tmp_path_factory: pytest.TempPathFactory
) -> Generator[tuple[Ground, Proxy]]:
    home = tmp_path_factory.mktemp("lossy")
    with lossy_ground(module_database_url, servers.valkey.url, provider.url, home, tail_messages=4) as made:
        yield made


@pytest.mark.parametrize("loss", list(Loss))
def test_a_summary_stands_once_though_the_reply_to_its_write_is_lost(
    lossy: tuple[Ground, Proxy], provider: Rehearsal, loss: Loss
) -> None:
    worker, proxy = lossy
    session = long_session(worker, provider, [{"text": GOOD}], [{"text": "went on"}], steps=4)
    turn = worker.turn(session, "And now?")
    held = claim(worker)
    before = proxy.lost
    proxy.lose((b"canary-7",), loss)
    came = compact(worker, held)
    assert proxy.lost == before + 1
    assert isinstance(came, run.Compacted)
    edits = worker.rows("select id from edits where session = %s and kind = 'summary'", session)
    assert [edit["id"] for edit in edits] == [came.edit]
    assert len(worker.rows("select 1 from reductions where session = %s and decision = 'compact'", session)) == 1
    row = worker.one("select * from sessions where id = %s", session)
    assert (row["last_edit"], row["fallback_streak"], row["verdict_due"]) == (held.last_edit, 0, True)
    go_on(worker, held)
    assert worker.view(turn)["answer"] == "went on"
    assert len(worker.rows("select 1 from calls where session = %s and purpose = 'summary'", session)) == 1


@pytest.mark.parametrize("loss", list(Loss))
def test_what_is_to_be_remembered_is_written_once_though_the_commit_is_lost(
    lossy: tuple[Ground, Proxy], provider: Rehearsal, loss: Loss
) -> None:
    worker, proxy = lossy
    fact = f"the canary sings at eight, {loss}"
    summary = {"text": f"{GOOD}\n## To remember\n- {fact}"}
    session = long_session(worker, provider, [summary], [{"text": "went on"}], steps=4)
    worker.turn(session, "And now?")
    held = claim(worker)
    before = proxy.lost
    proxy.lose((b"insert into memory_revisions", b"COMMIT"), loss)
    came = compact(worker, held)
    assert (proxy.lost, isinstance(came, run.Compacted)) == (before + 1, True)
    assert len(worker.rows("select 1 from edits where session = %s and kind = 'summary'", session)) == 1
    put = worker.rows("select put from memory_revisions where session = %s", session)
    assert [row["put"] for row in put] == [fact]
    (told,) = worker.rows("select arithmetic from reductions where session = %s and decision = 'compact'", session)
    assert '"remembered":1' in told["arithmetic"]


@pytest.mark.parametrize("loss", list(Loss))
def test_stubs_stand_once_though_the_reply_to_their_write_is_lost(
    lossy: tuple[Ground, Proxy], provider: Rehearsal, bodies: Bodies, loss: Loss
) -> None:
    """All of a prune is one statement: what its holder remembers afterwards is what the rows have, and it goes on."""
    worker, proxy = lossy
    session = long_session(worker, provider, replies=[{"text": "went on"}], steps=4)
    advance(worker, 7_200)
    turn = worker.turn(session, "And now?")
    held = claim(worker)
    before = proxy.lost
    proxy.lose((b"characters left out; kept as",), loss)
    go_on(worker, held)
    assert proxy.lost == before + 1
    assert (worker.view(turn)["status"], worker.view(turn)["answer"]) == ("done", "went on")
    (decided,) = worker.rows("select * from reductions where session = %s and decision = 'prune'", session)
    stubs = worker.rows("select id, first, block from edits where session = %s and kind = 'stub' order by id", session)
    assert len({(stub["first"], stub["block"]) for stub in stubs}) == len(stubs) > 0
    assert decided["first_edit"] == stubs[0]["id"]
    row = worker.one("select last_edit, prefix from sessions where id = %s", session)
    assert (row["last_edit"], held.last_edit) == (stubs[-1]["id"], stubs[-1]["id"])
    last = worker.one("select last_edit from calls where session = %s order by seq desc limit 1", session)
    assert last["last_edit"] == stubs[-1]["id"], "the call that followed knew the edit"
    assert_replayed(worker, session, bodies(session))

"""Old results as lines: at a cold boundary, when carrying them has cost enough, at birth; and what stays as it was."""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Generator
from typing import Any
from uuid import UUID

import pytest

from deploy.local.servers import Servers
from shared.errors import LeaseLost
from shared.request import blocks, handles
from tests.ground import Ground, Rehearsal, ground
from tests.shrink.compacting import claim
from tests.shrink.conftest import Bodies, advance, assert_replayed
from workers import reserving
from workers.reduction import prune, write

LINE = "left out; read_artifact"


@pytest.fixture(scope="module")
def small(
    servers: Servers, module_database_url: str, provider: Rehearsal, tmp_path_factory: pytest.TempPathFactory
) -> Generator[Ground]:
    """A short tail, so that few steps are enough."""
    provider.reset()
    home = tmp_path_factory.mktemp("small")
    with ground(module_database_url, servers.valkey.url, provider.url, home, tail_messages=4) as made:
        yield made


def _begin(worker: Ground, files: int = 4) -> UUID:
    """A session whose workspace holds texts of some 6,000 tokens."""
    session = worker.session()
    folder = worker.home / "ws" / str(session)
    folder.mkdir(parents=True)
    for number in range(files):
        lines = [f"{number}-{line} the quick brown fox jumps over the lazy dog and goes on" for line in range(350)]
        (folder / f"{number}.txt").write_text("\n".join(lines))
    return session


def _read(*numbers: int) -> dict[str, Any]:
    return {"tools": [{"name": "read_file", "input": {"path": f"{number}.txt"}} for number in numbers]}


def _turn(worker: Ground, provider: Rehearsal, session: UUID, replies: list[dict[str, Any]]) -> UUID:
    provider.script(replies, session=str(session))
    turn = worker.turn(session, "go on")
    worker.look()
    row = worker.view(turn)
    assert row["status"] == "done", (row["error_code"], row["error_text"])
    return turn


def _away(worker: Ground, provider: Rehearsal, seconds: float) -> None:
    advance(worker, seconds)
    provider.post("clock", {"offset_s": float(worker.one("select offset_s from test_clock")["offset_s"])})


def _reductions(worker: Ground, session: UUID) -> list[dict[str, Any]]:
    rows = worker.rows("select * from reductions where session = %s order by id", session)
    return [{**row, "arithmetic": json.loads(row["arithmetic"])} for row in rows if row["decision"] != "set_ttl"]


def test_what_has_grown_cold_comes_back_without_its_old_results(
    small: Ground, provider: Rehearsal, bodies: Bodies
) -> None:
    session = _begin(small)
    _turn(small, provider, session, [_read(0), _read(1), _read(2), _read(3), {"text": "read"}])
    before = provider.ledger(session)[-1]
    contents = small.rows("select id, content from messages where session = %s order by id", session)
    _away(small, provider, 7_200)
    turn = _turn(small, provider, session, [{"text": "still here"}])

    (row,) = _reductions(small, session)
    assert (row["decision"], row["cause"], row["turn"]) == ("prune", "cold", turn)
    assert row["arithmetic"]["cold"] is True
    stubs = small.rows(
        "select first, block, text, tokens_before from edits where session = %s and kind = 'stub'", session
    )
    assert len(stubs) == 3, "the newest result is within the last four messages"
    assert {handles.result(stub["first"], stub["block"]) in stub["text"] for stub in stubs} == {True}
    assert all(LINE in stub["text"] and stub["text"].startswith("[read_file: ") for stub in stubs)
    after = provider.ledger(session)[-1]
    size = sum(before[key] for key in ("input", "cache_read", "cache_write_5m", "cache_write_1h"))
    left = sum(after[key] for key in ("input", "cache_read", "cache_write_5m", "cache_write_1h"))
    assert left < size / 2
    assert abs(row["tokens_after"] - left) < left * 0.15
    assert (
        small.rows(
            "select id, content from messages where session = %s and id <= %s order by id", session, contents[-1]["id"]
        )
        == contents
    )
    (event,) = [e for e in small.events(turn) if e.kind == "context.reduced" and e.data["decision"] == "prune"]
    assert event.data["arithmetic"] == row["arithmetic"]
    assert_replayed(small, session, bodies(session))


def test_a_burst_is_pruned_when_carrying_has_cost_enough_and_reads_what_stands_before_the_edit(
    small: Ground, provider: Rehearsal, bodies: Bodies
) -> None:
    """Each prune begins behind the region of the last one, and the provider still has what stood there."""
    session = _begin(small, 24)
    reads = [_read(number) for number in range(24)]
    _turn(small, provider, session, [*reads, {"text": "read"}])

    rows = _reductions(small, session)
    assert len(rows) >= 2
    assert {(row["decision"], row["cause"]) for row in rows} == {("prune", "meter")}
    for row in rows:
        told = row["arithmetic"]
        assert told["meter"] >= 0.8 * told["edit_price"]
        assert told["dropped"] >= 4_000
        assert told["cold"] is False
    for earlier, later in itertools.pairwise(rows):
        runway = max(earlier["tokens_before"] - earlier["tokens_after"], 4_000)
        assert later["tokens_before"] >= earlier["tokens_after"] + runway
    calls = small.rows("select last_edit from calls where session = %s and purpose = 'main' order by seq", session)
    ledger = provider.ledger(session)
    firsts = [at for at in range(1, len(calls)) if calls[at]["last_edit"] != calls[at - 1]["last_edit"]]
    assert len(firsts) == len(rows)
    floor = ledger[0]["cache_write_5m"] - 100
    for nth, at in enumerate(firsts):
        assert ledger[at]["extended"] is False
        assert ledger[at + 1]["extended"] is True, "the next call extends the edited one"
        prompt = ledger[at]["cache_read"] + ledger[at]["cache_write_5m"] + ledger[at]["input"]
        assert ledger[at + 1]["cache_read"] >= prompt - 50
        if nth:  # system prompt and the lines of the prune before
            assert ledger[at]["cache_read"] > floor + 100 * nth
    assert_replayed(small, session, bodies(session))


def test_a_result_that_stands_whole_already_becomes_a_line_at_birth(
    small: Ground, provider: Rehearsal, bodies: Bodies
) -> None:
    session = _begin(small)
    _turn(small, provider, session, [_read(0), _read(0), _read(1, 1), {"text": "read"}])

    rows = small.rows(
        "select id, content, sent from messages where session = %s and author = 'tool' order by id", session
    )
    whole, again, first, second = rows
    assert (whole["sent"], first["sent"]) == (None, None)
    texts = [blocks.text_of(blocks.split(row["content"])[0]) for row in rows]
    assert texts[0] == texts[1]
    assert texts[2] == texts[3]
    assert handles.result(whole["id"], 0) in again["sent"]
    assert "the same, to the character, as the result of call 1 of this step" in second["sent"]
    assert _reductions(small, session) == []
    ledger = provider.ledger(session)
    assert all(call["extended"] is not False for call in ledger)
    assert ledger[2]["cache_write_5m"] < 400, "the repeat cost a line"
    assert_replayed(small, session, bodies(session))


def test_a_holder_that_lost_its_right_writes_no_stub(small: Ground, provider: Rehearsal) -> None:
    session = _begin(small)
    _turn(small, provider, session, [_read(0), _read(1), _read(2), {"text": "read"}])
    small.turn(session, "go on")
    held = claim(small)
    request = reserving.standing(small.ports, held)
    plan = prune.plan(request, 3, 1.0, held.claim.tools)
    assert plan is not None
    small.execute("update sessions set fence = fence + 1 where id = %s", session)
    with pytest.raises(LeaseLost):
        write.prune(small.ports, held, plan, held.context, None, "cold", {}, 10_000)
    with pytest.raises(LeaseLost):
        write.note(small.ports, held, "set_ttl", held.context, "holding cost", {}, 10_000)
    assert small.rows("select 1 from edits where session = %s and kind = 'stub'", session) == []
    assert _reductions(small, session) == []


def test_a_bill_over_the_threshold_clears_the_baseline_and_one_under_it_sets_it_again(
    worker: Ground, provider: Rehearsal
) -> None:
    session = worker.session()
    provider.script([{"text": "one"}, {"text": "two"}, {"text": "three"}], session=str(session))
    ports, seen = worker.ports, list[bool]()
    for threshold in (0.9, 0.001, 0.9):
        settings = ports.settings.model_copy(
            update={"context_threshold": threshold, "compact_at_threshold": False, "compact_by_meter": False}
        )
        worker.ports = dataclasses.replace(ports, settings=settings)
        worker.turn(session, "a word")
        worker.look()
        row = worker.one("select baseline_estimate, baseline_billed from sessions where id = %s", session)
        assert (row["baseline_estimate"] is None) == (row["baseline_billed"] is None)
        seen.append(row["baseline_billed"] is not None)
    assert seen == [True, False, True]


def test_bulky_arguments_are_shortened_and_the_rest_of_them_stays(
    small: Ground, provider: Rehearsal, bodies: Bodies
) -> None:
    session = _begin(small)
    text = "a line of some length that is written to a file\n" * 500
    write = {"tools": [{"name": "write_file", "input": {"path": "long.txt", "content": text}}]}
    _turn(small, provider, session, [write, _read(0), _read(1), _read(2), {"text": "done"}])
    _away(small, provider, 7_200)
    _turn(small, provider, session, [{"text": "still here"}])

    stub = small.one(
        "select e.text, e.block, m.id from edits e join messages m on m.id = e.first"
        " where e.session = %s and e.kind = 'stub' and m.role = 'assistant'", session,
    )  # fmt: skip
    kept = json.loads(stub["text"])
    assert kept["path"] == "long.txt"
    assert (
        kept["content"] == f"({len(text):,} characters left out; kept as {handles.result(stub['id'], stub['block'])})"
    )
    assert text[:100] not in bodies(session)[-1].decode()
    assert_replayed(small, session, bodies(session))

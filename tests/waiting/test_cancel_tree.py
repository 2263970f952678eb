"""A cancel from any live state, down the tree, while Redis is gone: only the root is marked, as if whoever cancelled
died right after, and everything else is told by each process's question and by the sweep."""

from __future__ import annotations

import threading
from collections.abc import Generator
from pathlib import Path
from uuid import UUID

import pytest

from shared.values import TERMINAL, TurnClass, TurnStatus
from tests.ground import Ground, Rehearsal, ground, until
from tests.tools import stubborn
from tests.waiting.acts import cancelled, children, delegate, tool
from tests.waiting.living import seconds, sweeping, within, working

NOWHERE = "unix:///nowhere/valkey.sock"
WRITE = tool("write_file", path="a.txt", content="alpha")


@pytest.fixture
def alone(database_url: str, provider: Rehearsal, tmp_path: Path) -> Generator[Ground]:
    """A worker without Redis, where a child may delegate in turn."""
    provider.reset()
    with ground(
        database_url, NOWHERE, provider.url, tmp_path, approve_tools="write_file", max_output_tokens=30_000,
        spawn_depth=3,
    ) as made:  # fmt: skip
        yield made


def _all_over(worker: Ground) -> bool:
    return all(TurnStatus(row["status"]) in TERMINAL for row in worker.rows("select status from turns"))


def _next_turn_works(worker: Ground, provider: Rehearsal, session: UUID) -> None:
    provider.script([{"text": "still here"}], session=str(session))
    turn = worker.turn(session, "and now?")
    until(lambda: worker.view(turn)["status"] == "done", 20, "the next turn's end")
    assert worker.view(turn)["answer"] == "still here"
    assert all(call["extended"] is not False for call in provider.ledger(session))
    assert provider.ledger(session)[-1]["status"] == 200


def test_a_tool_with_a_detached_child_is_gone_after_its_trees_root_is_cancelled(
    alone: Ground, provider: Rehearsal, monkeypatch: pytest.MonkeyPatch
) -> None:
    stubborn.offer(monkeypatch)
    word = stubborn.mark()
    session = alone.session()
    provider.script([{"text": "so", "tools": [delegate("leaf")]}], session=str(session))
    provider.script([{"text": "so", "tools": [tool("stubborn", word=word)]}], match={"contains": "leaf"})
    root = alone.turn(session, "go")
    with working(alone), sweeping(alone, 2.0) as sweeper:
        stubborn.begun(word)
        until(lambda: alone.view(root)["parked_on"] == "children", 10, "the parent's sleep")
        (child,) = children(alone, root)

        cancelled(alone, root)

        assert stubborn.gone(word, 5) < 5
        until(lambda: alone.view(child["id"])["status"] == "cancelled", 5, "the child's end")
        run = alone.one("select status, result from tool_runs where turn = %s", child["id"])
        assert (run["status"], run["result"]) == ("cancelled", "cancelled before it had finished")
        _next_turn_works(alone, provider, session)
        assert sweeper.counters["wake_missed"] == 0
    assert alone.view(root)["status"] == "cancelled"


def test_a_tree_in_every_live_state_is_over_within_two_seconds(alone: Ground, provider: Rehearsal) -> None:
    """Below the root: one streams, one sleeps for a person, one is queued, one sleeps for a child that streams."""
    session = alone.session()
    provider.script(
        [{"text": "so", "tools": [delegate("streams", "asks", "hands on")]}, {"text": "over"}], session=str(session)
    )
    slow = {"text": "word " * 200, "chunks": 200, "gap_s": 0.1}
    provider.script([slow], match={"contains": "streams"})
    provider.script([{"text": "so", "tools": [WRITE]}], match={"contains": "asks"})
    provider.script([{"text": "so", "tools": [delegate("flows")]}], match={"contains": "hands on"})
    provider.script([slow], match={"contains": "flows"})
    root = alone.turn(session, "go")
    with working(alone), sweeping(alone, 2.0):
        until(lambda: len(_stands(alone)) == 5, 15, "the tree")
        until(lambda: sorted(_stands(alone)) == ["approval", "children", "children", "running", "running"], 15, "it")
        # Text is out on both streams.
        until(lambda: len([c for c in provider.ledger() if c["state"] == "open"]) == 2, 10, "two calls")

        cancelled(alone, root)

        took = seconds(lambda: until(lambda: _all_over(alone), 10, "every end"))
        assert {row["status"] for row in alone.rows("select status from turns")} == {"cancelled"}
        _next_turn_works(alone, provider, session)
    assert took < within(2), took
    cut = alone.rows("select cut from messages where author = 'model' and cut")
    assert len(cut) == 2
    assert alone.one("select status from approvals")["status"] == "void"


def _stands(worker: Ground) -> list[str]:
    return [str(row["s"]) for row in worker.rows("select coalesce(parked_on, status) as s from turns")]


@pytest.mark.parametrize("state", ["queued", "streams", "tool", "approval", "clarify", "children", "woken", "backoff"])
def test_a_cancel_from_this_state_keeps_what_was_seen_and_the_next_turn_works(
    alone: Ground, provider: Rehearsal, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    stubborn.offer(monkeypatch)
    session, word = alone.session(), stubborn.mark()
    first = {
        "queued": {"text": "never"},
        "streams": {"text": "word " * 100, "chunks": 100, "gap_s": 0.1},
        "tool": {"text": "so", "tools": [tool("stubborn", word=word)]},
        "approval": {"text": "so", "tools": [tool("list_files"), WRITE]},
        "clarify": {"text": "so", "tools": [tool("clarify", question="which?")]},
        "children": {"text": "so", "tools": [delegate("one")]},
        "woken": {"text": "so", "tools": [WRITE]},
        "backoff": {"fault": {"kind": "status", "status": 429, "retry_after": 6}},
    }[state]
    provider.script([first], session=str(session))
    turn = alone.turn(session, "go")
    if state in {"streams", "tool"}:
        with working(alone, 2):
            if state == "tool":
                stubborn.begun(word)
            else:
                until(lambda: [c for c in provider.ledger(session) if c["state"] == "open"], 10, "the stream")
                threading.Event().wait(0.5)
            cancelled(alone, turn)
            took = seconds(lambda: until(lambda: alone.view(turn)["status"] == "cancelled", 10, "its end"))
            assert took < within(2), took
            stubborn.gone(word)
    else:
        if state != "queued":
            alone.look_once(TurnClass.INTERACTIVE)
            assert alone.view(turn)["parked_on"] == ("approval" if state == "woken" else state)
        if state == "woken":
            alone.execute("update approvals set status = 'approved', decided_at = clock_now()")
            alone.execute(
                "update turns set status = 'queued', parked_on = null, parked_at = null, wake_at = null where id = %s",
                turn,
            )
        cancelled(alone, turn)
        assert alone.view(turn)["status"] == "cancelled"
        assert alone.look_once(TurnClass.INTERACTIVE) == 0
    calls = alone.rows("select status from tool_runs where turn = %s order by ordinal", turn)
    assert "asked" not in {row["status"] for row in calls}
    if state == "streams":
        message = alone.one("select content, cut from messages where turn = %s and author = 'model'", turn)
        assert message["cut"]
        assert "word word" in message["content"]
    with working(alone, 2), sweeping(alone, 1.0):  # the key that was refused rests for the next turn too
        _next_turn_works(alone, provider, session)
    assert alone.rows("select 1 from messages m where m.author = 'model' and m.turn = %s", turn) or state in (
        "queued", "backoff",
    )  # fmt: skip

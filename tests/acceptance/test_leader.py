"""Leader first: children that share a cold prefix cost one write of it and reads by all the others; and whatever
befalls the leader, the rest go on at once."""

from __future__ import annotations

import threading
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from shared.store import cancel
from shared.store.pool import Connection
from tests.ground import CLASSES, Ground, Rehearsal, ground, until
from workers.held import Interrupt
from workers.look import Slots, look

CHILDREN = 10
CONTEXT = "\n".join(f"- rule {n:03}: {n * 7919:x} {n * 104729:x} {n * 1299709:x} {n * 15485863:x}" for n in range(330))
"""Of the kind that a context file holds, and long: with tools and the stable tier it is past 9,000 tokens."""
DELEGATE = {"name": "delegate_task", "input": {"tasks": [{"goal": f"part {n}"} for n in range(CHILDREN)]}}


@pytest.fixture
def worker(database_url: str, redis_url: str, provider: Rehearsal, tmp_path: Path) -> Generator[Ground]:
    provider.reset()
    with ground(database_url, redis_url, provider.url, tmp_path, max_output_tokens=30_000) as made:
        yield made


def _parent(worker: Ground, provider: Rehearsal) -> UUID:
    """A parent that sleeps for ten children, which share its context file."""
    session = worker.session()
    folder = Path(worker.one("select workspace from sessions where id = %s", session)["workspace"])
    folder.mkdir(parents=True)
    (folder / "AGENTS.md").write_text(CONTEXT, "utf-8")
    provider.script([{"text": "I hand it on", "tools": [DELEGATE]}, {"text": "all in"}], session=str(session))
    turn = worker.turn(session, "find out")
    look(worker.ports, worker.turns, Slots(2, CLASSES[:1]))
    assert worker.view(turn)["parked_on"] == "children"
    return turn


def _children(provider: Rehearsal, worker: Ground, parent: UUID) -> list[dict[str, Any]]:
    """The children's calls in the provider's ledger."""
    own = {str(row["session"]) for row in worker.rows("select session from turns where parent = %s", parent)}
    return [call for call in provider.ledger() if call["session"] in own]


def _look_from_slots(worker: Ground, slots: Slots, count: int) -> ThreadPoolExecutor:
    """As the doorbell's rings are answered: a thread a slot, over and over."""
    pool = ThreadPoolExecutor(count)
    for _ in range(count):
        pool.submit(look, worker.ports, worker.turns, slots)
    return pool


def _all_run(worker: Ground, parent: UUID) -> None:
    """Rings until the parent is done, as the sweep does each second, but faster."""
    slots = Slots(12, CLASSES)
    with ThreadPoolExecutor(12) as pool:
        stop = threading.Event()

        def answer() -> None:
            while not stop.wait(0.02):
                look(worker.ports, worker.turns, slots)

        for _ in range(11):
            pool.submit(answer)
        try:
            until(lambda: worker.view(parent)["status"] == "done", 60, "the parent's end")
        finally:
            stop.set()


def test_ten_children_cost_one_write_of_what_they_share_and_nine_reads(worker: Ground, provider: Rehearsal) -> None:
    parent = _parent(worker, provider)
    provider.script([{"text": "found", "delay_s": 0.3}])
    _all_run(worker, parent)
    calls = _children(provider, worker, parent)
    assert len(calls) == CHILDREN
    shared = max(call["cache_read"] for call in calls)
    assert shared >= 9_000
    assert sorted(call["cache_read"] >= shared for call in calls) == [False] + [True] * (CHILDREN - 1)


def test_without_a_gate_each_of_them_writes_it(worker: Ground, provider: Rehearsal) -> None:
    """What the gate is held against: ten that start together."""
    parent = _parent(worker, provider)
    worker.execute("update turns set shared_key = null where parent = %s", parent)
    provider.script([{"text": "found", "delay_s": 1.5}])
    _all_run(worker, parent)
    assert sum(call["cache_read"] < 9_000 for call in _children(provider, worker, parent)) == CHILDREN


def _led(worker: Ground, provider: Rehearsal) -> tuple[UUID, dict[str, Any], ThreadPoolExecutor]:
    """One child of ten is at the provider, which keeps silent, and nobody else may be claimed."""
    parent = _parent(worker, provider)
    provider.post("hold", {"hold": True})
    pool = _look_from_slots(worker, Slots(12, CLASSES), 4)
    (leader,) = until(
        lambda: worker.rows("select * from turns where parent = %s and status = 'running'", parent), 10, "a leader"
    )
    assert look(worker.ports, worker.turns, Slots(8, CLASSES)) == 0
    return parent, leader, pool


@pytest.mark.parametrize("fate", ["cancelled", "killed", "late"])
def test_whatever_befalls_the_leader_the_rest_go_on(worker: Ground, provider: Rehearsal, fate: str) -> None:
    parent, leader, pool = _led(worker, provider)
    try:
        match fate:
            case "cancelled":

                def work(connection: Connection) -> None:
                    with connection.transaction():
                        cancel.cancel(connection, leader["id"], worker.person)

                worker.database.read(work)
                held = worker.turns.get(leader["id"])
                assert held is not None
                held.interrupt(Interrupt.CANCEL)
                until(lambda: worker.view(leader["id"])["status"] == "cancelled", 10, "the leader's end")
            case "killed":  # what the sweep does with the turn of a dead worker
                worker.execute("update sessions set fence = fence + 1 where id = %s", leader["session"])
                worker.execute(
                    "update turns set status = 'queued', holder = null, fence = fence + 1 where id = %s", leader["id"]
                )
            case _:
                worker.execute("update shared_prefixes set leader_deadline = clock_timestamp()")
        others = ThreadPoolExecutor(2)
        others.submit(look, worker.ports, worker.turns, Slots(8, CLASSES))
        until(
            lambda: worker.rows(
                "select 1 from turns where parent = %s and status = 'running' and claim <> %s", parent, leader["claim"]
            ),
            10,
            "the next one",
        )
    finally:
        provider.post("hold", {"hold": False})
        pool.shutdown()


def test_a_question_never_waits_for_a_leader(worker: Ground, provider: Rehearsal) -> None:
    _, _, pool = _led(worker, provider)
    try:
        question = worker.turn(worker.session(), "quick")
        with ThreadPoolExecutor(1) as other:
            other.submit(look, worker.ports, worker.turns, Slots(8, CLASSES[:1]))
            until(lambda: worker.view(question)["status"] == "running", 10, "the question's start")
            provider.post("hold", {"hold": False})
    finally:
        provider.post("hold", {"hold": False})
        pool.shutdown()


def test_a_leader_that_the_provider_refuses_for_now_steps_back(worker: Ground, provider: Rehearsal) -> None:
    parent = _parent(worker, provider)
    provider.script([{"fault": {"kind": "status", "status": 429, "retry_after": 3}}, {"text": "found"}])
    with ThreadPoolExecutor(4) as pool:
        pool.submit(look, worker.ports, worker.turns, Slots(2, CLASSES))
        until(lambda: worker.rows("select 1 from calls where status = 'failed'"), 10, "the refusal")
        until(lambda: worker.one("select leader from shared_prefixes")["leader"] is None, 5, "the step back")
        assert worker.one("select warm_until from shared_prefixes")["warm_until"] is None
        pool.submit(look, worker.ports, worker.turns, Slots(8, CLASSES))
        until(
            lambda: (
                worker.one("select count(*) as n from turns where parent = %s and started_at is not null", parent)["n"]
                > 1
            ),
            2.5,
            "another leader, before the first one tries again",
        )
    _all_run(worker, parent)

"""One person's flood and another's short question: the question has a slot kept, or is given the only one between two
steps; and what an admin stops is handed back, or refused, while it runs."""

from __future__ import annotations

import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import UUID

import pytest

from deploy.drill.rig import slack
from shared import stream
from shared.request import blocks
from shared.store import intake, principals
from shared.store.pool import Connection
from shared.values import OnBusy, PrincipalKind, Role, TurnClass
from tests.ground import CLASSES, Ground, Rehearsal, ground, until
from workers.hints import Hints
from workers.look import Slots, look

STEPS = {"policy": "steps", "steps": 3, "tool": "list_files", "input": {"path": "."}, "text": "Done."}


@pytest.fixture
def worker(database_url: str, redis_url: str, provider: Rehearsal, tmp_path: Path) -> Generator[Ground]:
    provider.reset()
    with ground(database_url, redis_url, provider.url, tmp_path) as made:
        yield made


def _flood(worker: Ground, count: int) -> list[UUID]:
    """Children of somebody else, a session each."""

    def work(connection: Connection) -> list[UUID]:
        flooder = principals.ensure_principal(connection, "flooder", PrincipalKind.PERSON, Role.MEMBER)
        made: list[UUID] = []
        for number in range(count):
            session = intake.create_session(
                connection,
                intake.NewSession(flooder, "anthropic", worker.settings.model, str(worker.home / "ws" / "{session}")),
            )
            text = blocks.join([blocks.text(f"flood {number}")])
            new = intake.NewTurn(session, flooder, TurnClass.CHILD, text, deadline_s=600, max_steps=90)
            with connection.transaction():
                made.append(intake.admit(connection, new, on_busy=OnBusy.QUEUE, queue_bound=100).turn)
        return made

    return worker.database.read(work)


def _running(worker: Ground, turn_class: str) -> int:
    return worker.one(
        "select count(*) as n from turns where status = 'running' and class = %s", turn_class
    )["n"]  # fmt: skip


def _place(worker: Ground, scope: str, subject: str | None) -> None:
    worker.execute(
        "insert into stops (id, scope, subject, note, placed_by) values (gen_random_uuid(), %s, %s, 'enough', %s)",
        scope, subject, worker.person,
    )  # fmt: skip


def test_a_question_has_a_slot_however_many_children_of_another_wait(worker: Ground, provider: Rehearsal) -> None:
    _flood(worker, 60)
    provider.post("hold", {"hold": True})
    slots = Slots(8, CLASSES)
    with ThreadPoolExecutor(9) as pool:
        try:
            for _ in range(8):
                pool.submit(look, worker.ports, worker.turns, slots)
            until(lambda: _running(worker, "child") == 7, 10, "seven children")
            question = worker.turn(worker.session(), "quick")
            began = time.monotonic()
            pool.submit(look, worker.ports, worker.turns, slots)
            until(lambda: worker.view(question)["status"] == "running", 5, "the question's start")
            assert time.monotonic() - began < 2 * slack()
            assert _running(worker, "child") == 7
            assert worker.one("select count(*) as n from turns where status = 'queued'")["n"] == 53
        finally:
            worker.execute("update turns set status = 'cancelled', finished_at = now() where status = 'queued'")
            provider.post("hold", {"hold": False})


def test_with_one_slot_a_question_is_answered_between_two_steps_of_a_child(worker: Ground, provider: Rehearsal) -> None:
    """By age the child would come first when it is handed back: the question is claimed all the same."""
    (child,) = _flood(worker, 1)
    worker.execute("update turns set admit_key = admit_key - interval '1 hour' where id = %s", child)
    provider.script([{"text": "At once."}], match={"contains": "quick"})
    provider.post("script", STEPS | {"delay_s": 0.4})
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(look, worker.ports, worker.turns, Slots(1, CLASSES))
        until(provider.ledger, 10, "the child's first call")
        question = worker.turn(worker.session(), "quick")
        ran = done.result(30)
    asked, given = worker.view(question), worker.view(child)
    assert (asked["status"], given["status"]) == ("done", "done")
    order = [str(call["session"]) == str(asked["session"]) for call in provider.ledger()]
    assert order == [False, True, False, False, False]
    assert ran == 3  # the child, the question, the child again
    assert (given["attempts"], given["takeovers"], given["steps"]) == (0, 0, 4)


def test_a_child_does_not_give_way_for_a_question_that_may_not_run(worker: Ground, provider: Rehearsal) -> None:
    (child,) = _flood(worker, 1)
    provider.post("script", STEPS)
    question = worker.turn(worker.session(), "quick")
    _place(worker, "person", str(worker.person))
    assert worker.look(1) == 1
    assert (worker.view(child)["status"], worker.view(question)["status"]) == ("done", "queued")


def test_what_runs_is_handed_back_after_its_step_when_it_is_stopped(worker: Ground, provider: Rehearsal) -> None:
    turn = worker.turn(worker.session(), "work")
    provider.post("script", STEPS | {"delay_s": 0.5, "steps": 30})
    hints = Hints(worker.turns, worker.database, worker.ports.life, stream.connect(worker.settings.redis_url))
    hints.start()
    try:
        with ThreadPoolExecutor(1) as pool:
            done = pool.submit(worker.look)
            until(provider.ledger, 10, "the first call")
            _place(worker, "fleet", None)
            assert done.result(10) == 1
    finally:
        hints.stop()
    row = worker.view(turn)
    assert (row["status"], row["attempts"], row["parked_on"]) == ("queued", 0, None)
    assert 1 <= row["step"] <= 4
    assert worker.look() == 0
    worker.execute("update stops set lifted_at = now(), lifted_by = placed_by")
    provider.post("script", STEPS | {"steps": row["step"]})
    assert worker.look() == 1
    assert worker.view(turn)["status"] == "done"
    assert all(call["extended"] is not False for call in provider.ledger())


def test_a_call_of_a_stopped_tool_is_refused_with_the_stop(worker: Ground, provider: Rehearsal) -> None:
    _place(worker, "tool", "write_file")
    provider.script(
        [
            {
                "text": "two things",
                "tools": [
                    {"name": "write_file", "input": {"path": "a.txt", "content": "x"}},
                    {"name": "list_files", "input": {"path": "."}},
                ],
            },
            {"text": "so be it"},
        ]
    )
    turn = worker.turn(worker.session(), "write")
    worker.look()
    assert worker.view(turn)["answer"] == "so be it"
    refused, listed = worker.rows("select status, result from tool_runs where turn = %s order by ordinal", turn)
    assert refused["status"] == "failed"
    assert "write_file" in refused["result"]
    assert "enough" in refused["result"]
    assert str(worker.one("select id from stops")["id"]) in refused["result"]
    assert listed["status"] == "done"

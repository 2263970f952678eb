"""A turn that was told to end, or that kills its workers, ends where it is taken from a worker that is lost: each open
call has its result, and what may have happened is said to be unknown."""

from __future__ import annotations

import dataclasses
import threading

import pytest

from scheduler.takeover import take_orphans
from shared.values import TurnClass
from tests.ground import Ground, Rehearsal
from tests.tools import stubborn
from tests.waiting.acts import tool
from tests.waiting.living import room
from workers.held import Interrupt
from workers.pause import Pauses, Point


class _Hold(Pauses):
    def __init__(self) -> None:
        super().__init__("")
        self.reached, self.go = threading.Event(), threading.Event()

    def at(self, point: Point) -> None:
        if point is Point.BEFORE_TOOL and not self.reached.is_set():
            self.reached.set()
            assert self.go.wait(20)


@pytest.mark.parametrize("ends", ["cancelled", "failed"])
def test_open_calls_of_a_turn_that_ends_with_its_lost_worker_have_results(
    worker: Ground, provider: Rehearsal, monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    stubborn.offer(monkeypatch)
    session, word = worker.session(), stubborn.mark()
    provider.script(
        [{"text": "so", "tools": [tool("stubborn", word=word), tool("list_files")]}, {"text": "still here"}],
        session=str(session),
    )
    turn = worker.turn(session, "go")
    before, pauses = worker.ports, _Hold()
    worker.ports = dataclasses.replace(before, pauses=pauses)
    lost = threading.Thread(target=worker.look_once, args=(TurnClass.INTERACTIVE,))
    lost.start()
    assert pauses.reached.wait(10)
    if ends == "cancelled":
        worker.execute("update turns set cancel_requested_at = clock_now() where id = %s", turn)
    worker.execute("update turns set holder = gen_random_uuid(), attempts = 3 where id = %s", turn)
    with room(worker) as sweeper:
        assert take_orphans(sweeper) == 1
    worker.ports = before

    assert worker.view(turn)["status"] == ends
    runs = worker.rows("select status from tool_runs where turn = %s order by ordinal", turn)
    assert [run["status"] for run in runs] == ["unknown", "cancelled"]
    said = worker.rows("select ordinal, content from messages where turn = %s and author = 'tool' order by id", turn)
    assert [row["ordinal"] for row in said] == [1, 2]
    assert "outcome unknown" in said[0]["content"]
    following = worker.turn(session, "and now?")
    worker.look()
    assert worker.view(following)["answer"] == "still here"
    assert "transcript.repaired" not in [event.kind.value for event in worker.events(following)]
    assert all(call["extended"] is not False for call in provider.ledger(session))
    held = worker.turns.get(turn)
    assert held is not None
    held.interrupt(Interrupt.LOST)  # what its process's question would tell it, were it to come back
    pauses.go.set()
    lost.join(20)
    assert stubborn.living(word) == []
    assert worker.view(turn)["status"] == ends

"""What arrives while a turn works is read at the next boundary, though no boundary in mid-turn asks for it first."""

from __future__ import annotations

import dataclasses
from typing import cast

from tests.ground import Ground, Rehearsal
from workers.pause import Pauses, Point

TOOLS = [{"name": "list_files", "input": {"path": "."}}, {"name": "list_files", "input": {"path": ".", "depth": 1}}]


class SteersAt:
    """Puts a steering row into the session's inbox the first time that a point is reached."""

    def __init__(self, worker: Ground, session: object, turn: object, point: Point) -> None:
        self._worker, self._values, self._point, self._done = worker, (session, turn, worker.person), point, False

    def inside(self, _: Point) -> bool:
        return False

    def at(self, point: Point) -> None:
        if point is self._point and not self._done:
            self._done = True
            self._worker.execute(
                "insert into inbox (session, turn, dedupe_key, kind, author, payload) "
                'values (%s, %s, \'late\', \'steer\', %s, \'[{"type":"text","text":"and hurry"}]\')',
                *self._values,
            )


def test_a_steer_that_comes_while_tools_run_is_in_the_very_next_request(worker: Ground, provider: Rehearsal) -> None:
    session = worker.session()
    provider.script([{"text": "Looking.", "tools": TOOLS}, {"text": "done"}], session=str(session))
    turn = worker.turn(session, "go")
    pauses = cast("Pauses", SteersAt(worker, session, turn, Point.AFTER_TOOL))
    Ground(worker.settings, dataclasses.replace(worker.ports, pauses=pauses), worker.person, worker.home).look()

    view = worker.view(turn)
    assert (view["status"], view["answer"], view["step"], view["steps"]) == ("done", "done", 2, 2)
    rows = worker.rows("select step, ordinal, author, content from messages where turn = %s order by id", turn)
    places = [(row["step"], row["ordinal"]) for row in rows]
    assert places == [(0, 0), (1, 0), (1, 1), (1, 2), (1, 3), (2, 0)]
    assert "and hurry" in rows[4]["content"]
    assert len(provider.ledger(session)) == 2
    (waiting,) = worker.rows("select count(*) from inbox where session = %s and folded_into is null", session)
    assert waiting["count"] == 0


def test_a_write_whose_rows_did_not_come_back_is_read_before_the_next_request(
    worker: Ground, provider: Rehearsal
) -> None:
    """The requests of a turn are the same whether or not memory was lost between its steps."""
    session = worker.session()
    provider.script([{"text": "a", "tools": TOOLS}, {"text": "b", "tools": TOOLS}, {"text": "c"}], session=str(session))
    turn = worker.turn(session, "go")

    class Forgets:
        def inside(self, _: Point) -> bool:
            return False

        def at(self, point: Point) -> None:
            if point is Point.RECORDED:
                for held in worker.turns.all():
                    held.forget()

    ports = dataclasses.replace(worker.ports, pauses=cast("Pauses", Forgets()))
    dataclasses.replace(worker, ports=ports).look()
    assert worker.view(turn)["answer"] == "c"
    calls = provider.ledger(session)
    assert [call["extended"] for call in calls] == [None, True, True]

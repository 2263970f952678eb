"""What a worker still has in memory of turns that are over: nothing, by whatever name it was kept."""

from __future__ import annotations

import gc
import time
import uuid
from collections import deque
from typing import Any, cast
from uuid import UUID

from celery.worker import state

from shared import doorbell
from tests.ground import Ground, Rehearsal

_TOOLS = [
    {"name": "todo", "input": {"items": [{"text": "go on", "done": False}]}},
    {"name": "write_file", "input": {"path": "notes.txt", "content": "so it is"}},
    {"name": "read_file", "input": {"path": "notes.txt"}},
    {"name": "terminal", "input": {"command": "sleep 60", "background": True}},
]
_ASKS = {"name": "clarify", "input": {"question": "which one?"}}
_DELEGATES = {"name": "delegate_task", "input": {"tasks": [{"goal": "find out"}]}}


def _within(value: Any) -> list[object]:
    """What a container holds."""
    if isinstance(value, dict):
        known = cast("dict[object, object]", value)
        return [*known.keys(), *known.values()]
    return list(cast("list[object]", value)) if isinstance(value, list | set | frozenset | deque | tuple) else []


def _kept(names: set[str], ours: list[object]) -> list[str]:
    """Where one of these ids still stands, as an id or as words, but for what this test holds itself."""
    gc.collect()
    apart = {id(one) for one in ours}
    found: list[str] = []
    for owner in gc.get_objects():
        if id(owner) in apart or owner is ours:
            continue
        if type(owner) is UUID and str(owner) in names:
            found.append(f"{owner!r} of {[type(one).__name__ for one in gc.get_referrers(owner)]}")
        found += [f"{one} in a {type(owner).__name__}" for one in _within(owner) if type(one) is str and one in names]
    return found


def test_nothing_is_kept_by_the_name_of_a_turn_or_of_its_session(worker: Ground, provider: Rehearsal) -> None:
    def some() -> list[str]:
        """Two sessions of two turns each, one that waits for a person, one with a child; their ids, which nobody else
        here keeps."""
        sessions = [worker.session() for _ in range(2)]
        for session in sessions:
            provider.script([{"tools": _TOOLS}, {"text": "so it is"}], session=str(session), repeat=True)
        turns = [worker.turn(session, "go on") for session in sessions for _ in range(2)]
        asks, delegates = worker.session(), worker.session()
        provider.script([{"tools": [_ASKS]}], session=str(asks))
        provider.script([{"tools": [_DELEGATES]}, {"text": "so it is"}], session=str(delegates))
        turns += [worker.turn(asks, "ask"), worker.turn(delegates, "have it done")]
        worker.look()
        ends = [worker.view(turn)["status"] for turn in turns]
        assert ends == [*["done"] * 4, "parked", "done"]
        (child,) = worker.rows("select id, session from turns where parent = %s", turns[-1])
        return [str(one) for one in (*sessions, asks, delegates, *turns, *child.values())]

    ids = some()
    worker.ports.publisher.flush()
    names = set(ids)
    end = time.monotonic() + 30
    while (found := _kept(names, [ids, names])) and time.monotonic() < end:
        time.sleep(0.2)  # what ran in the background is told to end, and its thread goes when it has
    assert found == []


def test_a_name_that_is_kept_is_seen() -> None:
    """The look above would see it in any of these."""
    one, two = uuid.uuid4(), uuid.uuid4()
    keeps: list[Any] = [{(one, 3): [1]}, {"of": {str(two): 1}}]
    names = {str(one), str(two)}
    found = _kept(names, [names])
    assert keeps
    assert len(found) == 2


def test_rings_that_came_too_late_are_forgotten() -> None:
    doorbell.celery_app("redis://127.0.0.1:1/0")
    revoked: Any = state.revoked
    for _ in range(2 * doorbell.MOST_REVOKED):
        revoked.add(str(uuid.uuid4()))
    assert len(revoked) == doorbell.MOST_REVOKED
    revoked.clear()
